package verify

func (v *verifier) promises()                 {}
func (v *verifier) limits()                   {}
func (v *verifier) rest(n func(string) int64) {}
func (v *verifier) manifest() bool            { return true }
func (v *verifier) stray()                    {}
