package plan

// HasDevices tells whether a dimension of the plan is the sum of a host's devices (D-185).
func (m *MDPlan) HasDevices() bool { return m.DevicePer > 0 }

// devices reads devices: {gpu_milli: {per: 1000}} of a plan.
func (r *reader) devices(p *Policy, d *MDPlan, v value) {
	taken := false
	r.perDimension(p, v, func(i int, at value) {
		if taken {
			r.fault(at, "a plan has devices in one dimension only; %s is the first here", p.Dimensions[d.Device])
			return
		}
		d.Device, d.DevicePer, taken = i, 1, true
		f, ok := r.fields(at, deviceObject.names...)
		if !ok {
			return
		}
		if of, ok := r.need(at, f, "per"); ok {
			if n, ok := r.integer(of, 1, numberMax); ok {
				d.DevicePer = n
			}
		}
		if d.OvercommitMilli[i] != milli {
			r.fault(at, "a device holds what it has: %s has devices, so its overcommit is 1", p.Dimensions[i])
		}
	})
}

// deviceScope refuses what a plan with devices does not have: whatever takes something back to make room (D-186). list
// and windows are the consumers of the plan and of its windows.
func (r *reader) deviceScope(d *MDPlan, f fields, list []*entry, windows [][]*entry) {
	const nothing = "a plan with devices takes nothing back to make room"
	at, has := f.get("devices")
	if !has || !d.HasDevices() {
		return
	}
	if v, ok := f.get("share_reclaim"); ok {
		at = v
	}
	if d.ShareReclaim {
		r.fault(at, nothing+": it needs share_reclaim: false")
	}
	if v, ok := f.get("reclaim_for_preference"); ok && d.ReclaimForPref {
		r.fault(v, nothing+": reclaim_for_preference goes without devices only")
	}
	if v, ok := f.get("lead"); ok && d.LeadUS > 0 {
		r.fault(v, nothing+": lead goes without devices only")
	}
	for _, entries := range append([][]*entry{list}, windows...) {
		for _, e := range entries {
			if e == nil {
				continue
			}
			if v, ok := e.fields.get("own"); ok {
				if rules, ok := r.list(v, ownRulesMax); ok && len(rules) > 0 {
					r.fault(v, nothing+": in one nobody owns hosts")
				}
			}
			if v, ok := e.fields.get("reserve"); ok {
				r.fault(v, nothing+": in one nobody reserves anything")
			}
		}
	}
}
