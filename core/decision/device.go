package decision

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// DevicesMax is how many devices a host has at most; they are numbered from 0.
const DevicesMax = 64

// DeviceText is a set of devices as tables tell it: bit k is device k, "0", "4+5+6+7", "" for none.
func DeviceText(devices uint64) string {
	var b []byte
	for ; devices != 0; devices &= devices - 1 {
		if len(b) > 0 {
			b = append(b, '+')
		}
		b = strconv.AppendInt(b, int64(bits.TrailingZeros64(devices)), 10)
	}
	return string(b)
}

// ReadDevices reads what DeviceText wrote: ok is false where the text is no such list.
func ReadDevices(text string) (devices uint64, ok bool) {
	if text == "" {
		return 0, true
	}
	for one := range strings.SplitSeq(text, "+") {
		n, err := strconv.ParseUint(one, 10, 8)
		if err != nil || n >= DevicesMax || devices>>n != 0 || one != strconv.FormatUint(n, 10) {
			return 0, false
		}
		devices |= 1 << n
	}
	return devices, true
}

const (
	partDetail  = "a unit takes %d %s of one device, no device of %s has so much free"
	wholeDetail = "a unit takes %d whole devices of %s, none of %s has so many free"
)

// DeviceDetail is the detail of a shortfall of units that so many hosts would take by sums, of which none has the
// devices: what a unit takes in a dimension of devices of so much.
func DeviceDetail(amount, per int64, dimension string, hosts int) string {
	of := "1 host"
	if hosts != 1 {
		of = strconv.Itoa(hosts) + " hosts"
	}
	if amount > per {
		return fmt.Sprintf(wholeDetail, amount/per, dimension, of)
	}
	return fmt.Sprintf(partDetail, amount, dimension, of)
}

// IsDeviceDetail tells whether DeviceDetail wrote a detail.
func IsDeviceDetail(detail string) bool {
	return strings.HasPrefix(detail, "a unit takes ") &&
		(strings.Contains(detail, " of one device, ") || strings.Contains(detail, " whole devices of "))
}
