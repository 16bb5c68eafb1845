package verify

// atRest checks what binds at a fixed point: owners first (INV-2), work conserved (INV-6), fair (INV-5).
func (v *verifier) atRest() {
	for _, p := range v.m.policy.plans {
		switch {
		case v.nears(p):
			v.report.cannot("INV-2, INV-5 and INV-6 at fixed points of the plan %s, while another window is near",
				p.name)
		case p.md:
			v.ownersFirst(p)
			v.fairPools(p)
		default:
			v.slotRest(p)
		}
	}
}
