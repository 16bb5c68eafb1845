package verify

func (v *verifier) amounts()                                          {}
func (v *verifier) shares()                                           {}
func (v *verifier) shortfalls()                                       {}
func (v *verifier) promises()                                         {}
func (v *verifier) limits()                                           {}
func (v *verifier) rest(n func(string) int64)                         {}
func (v *verifier) slotPlan(p *plan, t *rows, seen map[[2]string]int) {}
func (v *verifier) manifest() bool                                    { return true }
func (v *verifier) stray()                                            {}
