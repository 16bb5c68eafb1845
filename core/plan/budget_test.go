package plan

import (
	"testing"
	"time"
)

// TestPeriods holds when periods of budgets begin and end, by wall clocks that are put forward and back too.
func TestPeriods(t *testing.T) {
	for _, c := range []struct {
		zone, now  string // UTC
		per        Period
		begin, end string // UTC
	}{
		{"UTC", "2026-03-15 10:00", PerDay, "2026-03-15 00:00", "2026-03-16 00:00"},
		{"UTC", "2026-03-15 00:00", PerDay, "2026-03-15 00:00", "2026-03-16 00:00"},
		{"UTC", "2026-03-15 10:00", PerWeek, "2026-03-09 00:00", "2026-03-16 00:00"}, // a Sunday
		{"UTC", "2026-03-16 00:00", PerWeek, "2026-03-16 00:00", "2026-03-23 00:00"}, // a Monday
		{"UTC", "2026-12-31 23:59", PerMonth, "2026-12-01 00:00", "2027-01-01 00:00"},
		{"UTC", "2028-02-29 12:00", PerMonth, "2028-02-01 00:00", "2028-03-01 00:00"},
		{"Europe/London", "2026-03-29 12:00", PerDay, "2026-03-29 00:00", "2026-03-29 23:00"}, // a day of 23 hours
		{"Europe/London", "2026-10-25 12:00", PerDay, "2026-10-24 23:00", "2026-10-26 00:00"}, // of 25
		// October began in summer time
		{"Europe/London", "2026-10-31 23:30", PerMonth, "2026-09-30 23:00", "2026-11-01 00:00"},
		{"America/New_York", "2026-03-01 04:30", PerMonth, "2026-02-01 05:00", "2026-03-01 05:00"},
		// no midnight: 00:00 is 01:00. The years are past, because rules of years to come change with the zone data.
		{"America/Havana", "2024-03-10 12:00", PerDay, "2024-03-10 05:00", "2024-03-11 04:00"},
		{"America/Havana", "2024-03-10 04:59", PerDay, "2024-03-09 05:00", "2024-03-10 05:00"},
		{"America/Havana", "2020-11-01 04:30", PerMonth, "2020-11-01 04:00", "2020-12-01 05:00"}, // midnight twice
		{"America/Havana", "2020-11-01 05:30", PerMonth, "2020-11-01 04:00", "2020-12-01 05:00"},
	} {
		at, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		const form = "2006-01-02 15:04"
		now, err := time.Parse(form, c.now)
		if err != nil {
			t.Fatal(err)
		}
		told := func(us int64) string { return time.UnixMicro(us).UTC().Format(form) }
		if got := told(c.per.Begin(now.UnixMicro(), at)); got != c.begin {
			t.Errorf("%s of %s in %s begins %s, want %s", c.per, c.now, c.zone, got, c.begin)
		}
		if got := told(c.per.End(now.UnixMicro(), at)); got != c.end {
			t.Errorf("%s of %s in %s ends %s, want %s", c.per, c.now, c.zone, got, c.end)
		}
	}
}

// TestPeriodsFollow goes through a year in half hours: periods lie end to end, and each instant is in its own.
func TestPeriodsFollow(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for _, zone := range []string{"Europe/London", "America/Havana", "Australia/Lord_Howe", "Asia/Beirut"} {
		at, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, per := range []Period{PerDay, PerWeek, PerMonth} {
			begin, end := per.Begin(first, at), per.End(first, at)
			for i := range int64(2 * 24 * 366) {
				now := first + i*30*time.Minute.Microseconds()
				if now >= end {
					begin, end = end, per.End(end, at)
				}
				if now < begin || now >= end || per.Begin(now, at) != begin || per.End(now, at) != end {
					t.Fatalf("%s in %s: the period of %s", per, zone, time.UnixMicro(now).In(at))
				}
			}
		}
	}
}
