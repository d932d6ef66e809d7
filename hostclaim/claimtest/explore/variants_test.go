package explore_test

// variant is hostclaim without one guard. Each edit is of one place that occurs
// once in its file; keep is true unless the guard of that name is taken out.
type variant struct {
	guard  string
	faults int // that the way to its counterexample takes
	edits  []edit
}

// boxes is how many boxes the way takes. A way out that is missing shows where
// all ways are known, which with two boxes takes seconds.
func (v variant) boxes() int {
	switch v.guard {
	case "a failed probe clears the release of the source", "a target that is stuck in probing gives the host up",
		"an operator leaves a target that has written with proof":
		return 2
	}
	return 3
}

type edit struct{ file, old, new string }

// variants are found by the exploration, each by a counterexample.
var variants = []variant{
	{"only the executor is admitted", 0, []edit{{"admit.go",
		`case c.Op.Exec != a.Box:`, `case KEEP && c.Op.Exec != a.Box:`}}},
	{"an admission is bound to the session observed", 0, []edit{{"admit.go",
		`case h.Session != a.Session || h.Generation != a.Generation:`,
		`case KEEP && (h.Session != a.Session || h.Generation != a.Generation):`}}},
	{"the first attempt opens the prepared generation", 0, []edit{{"admit.go",
		`case a.NewGeneration != j.Prepared:`, `case KEEP && a.NewGeneration != j.Prepared:`}}},
	{"an opening keeps the stamp", 0, []edit{{"admit.go",
		`case !a.KeepStamp:`, `case KEEP && !a.KeepStamp:`}}},
	{"an opening restores the pin", 0, []edit{{"admit.go",
		`case a.Baseline != j.Pin.Position:`, `case KEEP && a.Baseline != j.Pin.Position:`}}},
	{"an attempt is counted before it is made", 0, []edit{{"admit.go",
		`if j.ProbeAdmission >= j.ProbeAttempts {`, `if KEEP && j.ProbeAdmission >= j.ProbeAttempts {`}}},
	{"nobody is admitted after a release", 0, []edit{{"admit.go",
		`return o.Journal.Release == nil`, `return !KEEP || o.Journal.Release == nil`}}},
	{"an uncovered admission declares a loss", 1, []edit{{"admit.go",
		`if a.Coverage == Uncovered && h.Session > 0 {`, `if KEEP && a.Coverage == Uncovered && h.Session > 0 {`}}},
	{"a prepared generation is fresh", 1, []edit{{"admit.go",
		`if seen || generation == j.Prepared || generation == j.PreparedOpened || contains(j.Abandoned, generation) {`,
		`if KEEP && (seen || generation == j.Prepared || generation == j.PreparedOpened || contains(j.Abandoned, generation)) {`}}},
	{"every participant acknowledges", 0, []edit{{"relocate.go",
		`if !c.Op.Acknowledged() {`, `if KEEP && !c.Op.Acknowledged() {`}}},
	{"a participant acknowledges in its enrollment", 0, []edit{{"relocate.go",
		`if want := c.Op.member(box).Enrollment; enrollment != want {`, `if want := c.Op.member(box).Enrollment; KEEP && enrollment != want {`}}},
	{"only a drain that is starting is cancelled", 1, []edit{{"relocate.go",
		`case c.Op.Phase != Starting || !c.Op.sourceExecutes():`, `case KEEP && (c.Op.Phase != Starting || !c.Op.sourceExecutes()):`}}},
	{"a step waits while the operation is stuck", 1, []edit{{"relocate.go",
		"if c.Op.Journal.Stuck != nil {", "if KEEP && c.Op.Journal.Stuck != nil {"}}},
	{"every other box that was touched owes a chore", 0, []edit{{"relocate.go",
		"	c.oweLocal()\n", "	if KEEP {\n		c.oweLocal()\n	}\n"}}},
	{"a build that nobody opened is put away", 1, []edit{{"replace.go",
		"		j.Abandoned = add(j.Abandoned, j.Prepared)\n", "		if KEEP {\n			j.Abandoned = add(j.Abandoned, j.Prepared)\n		}\n"}}},
	{"a pin is selected against this claim", 0, []edit{{"pin.go",
		`if want := PinKey(c.Host, op, c.Gen-1); p.Key != want {`, `if want := PinKey(c.Host, op, c.Gen-1); KEEP && p.Key != want {`}}},
	{"a pin reaches what was released", 1, []edit{{"pin.go",
		`end != nil && !c.Reaches(p.Position, end.Final) {`, `KEEP && end != nil && !c.Reaches(p.Position, end.Final) {`}}},
	{"a pin is journaled once", 0, []edit{{"pin.go",
		`if c.Op.ID == op && c.Op.Journal.Pin != nil {`, `if KEEP && c.Op.ID == op && c.Op.Journal.Pin != nil {`}}},
	{"an empty pin needs proof", 1, []edit{{"position.go",
		`if !c.evidencedEmpty() {`, `if KEEP && !c.evidencedEmpty() {`},
		{"position.go", `if !c.evidencedNoFiles() {`, `if KEEP && !c.evidencedNoFiles() {`}}},
	{"a pin is of the chain", 1, []edit{{"position.go",
		`return wrong("baseline %s is not in the chain %v", p, c.Chain())`,
		"if !KEEP {\n		return nil\n	}\n	return wrong(\"baseline %s is not in the chain %v\", p, c.Chain())"}}},
	{"a release is the executor's", 0, []edit{{"release.go",
		`case (Member{r.Box, r.Enrollment}) != want:`, `case KEEP && (Member{r.Box, r.Enrollment}) != want:`}}},
	{"a host is taken on the receipt of its release", 0, []edit{{"release.go",
		"if err := c.checkReceipt(receipt); err != nil {", "if err := c.checkReceipt(receipt); KEEP && err != nil {"}}},
	{"a failed probe clears the release of the source", 1, []edit{{"probe.go",
		"if c.PreparedOpened() {\n		c.Op.Journal.Release = nil", "if KEEP && c.PreparedOpened() {\n		c.Op.Journal.Release = nil"}}},
	{"a probe is of the current session", 1, []edit{{"probe.go",
		`if !c.probed(&p) {`, `if KEEP && !c.probed(&p) {`},
		{"probe.go", `if !c.probed(c.Op.Journal.Probe) {`, `if KEEP && !c.probed(c.Op.Journal.Probe) {`}}},
	{"evidence is about the member", 1, []edit{{"fence.go",
		`case e.Box() != m.Box || e.Enrollment() != m.Enrollment:`, `case KEEP && (e.Box() != m.Box || e.Enrollment() != m.Enrollment):`}}},
	{"evidence is from the region", 1, []edit{{"fence.go",
		`case e.Region() != c.Holder.Region:`, `case KEEP && e.Region() != c.Holder.Region:`}}},
	{"evidence is kept for people", 1, []edit{{"fence.go",
		"	c.retainLoss(g, f, m.Box, role)\n", "	if KEEP {\n		c.retainLoss(g, f, m.Box, role)\n	}\n"}}},
	{"a source that executes goes on as its target is fenced", 1, []edit{{"fence.go",
		"if c.Op.sourceExecutes() {\n		return nil", "if KEEP && c.Op.sourceExecutes() {\n		return nil"}}},
	{"the source is not named", 1, []edit{{"replace.go",
		`case next.Box == o.Intent.Source.Box:`, `case KEEP && next.Box == o.Intent.Source.Box:`}}},
	{"a box that was replaced is not named again", 2, []edit{{"replace.go",
		`case contains(o.Journal.Replaced, next.Box):`, `case KEEP && contains(o.Journal.Replaced, next.Box):`}}},
	{"a lost box takes nothing", 2, []edit{{"replace.go",
		`case c.IsLost(box):`, `case KEEP && c.IsLost(box):`}}},
	{"a box that owes a chore takes nothing", 1, []edit{{"replace.go",
		`case c.Owes(box, ParkLocal):`, `case KEEP && c.Owes(box, ParkLocal):`}}},
	{"a target that has written is not abandoned", 1, []edit{{"replace.go",
		`case c.PreparedOpened():
			return wrong("%s opened`, `case KEEP && c.PreparedOpened():
			return wrong("%s opened`},
		{"replace.go", `case c.Op.Exec == old && c.Holder.Stamp <= c.Holder.Session:`, `case KEEP && c.Op.Exec == old && c.Holder.Stamp <= c.Holder.Session:`}}},
	{"a local install is not remade once its build was opened", 0, []edit{{"install.go",
		"if c.PreparedOpened() {\n			return wrong(\"%q was opened", "if KEEP && c.PreparedOpened() {\n			return wrong(\"%q was opened"}}},
	{"a local install is of the accepted build", 0, []edit{{"install.go",
		`case l.SHA256 != j.PreparedAuthority.FilesManifestSHA256:`, `case KEEP && l.SHA256 != j.PreparedAuthority.FilesManifestSHA256:`}}},
	{"an operator leaves a target that has written with proof", 1, []edit{{"stuck.go",
		`if err := c.prove(proof); err != nil {`, `if err := c.prove(proof); KEEP && err != nil {`}}},
	{"a target that is stuck in probing gives the host up", 1, []edit{{"stuck.go",
		"if c.Op.Phase == Probing {\n			c.failProbe(now)", "if KEEP && c.Op.Phase == Probing {\n			c.failProbe(now)"}}},
	{"a session ends on the executor", 1, []edit{{"session.go",
		`if c.Op.Exec != box || !(c.writes() || c.Op.Phase == ProbeFailed) {`, `if KEEP && (c.Op.Exec != box || !(c.writes() || c.Op.Phase == ProbeFailed)) {`}}},
	{"only the selected box completes a create", 0, []edit{{"create.go",
		`if got := (Member{box, enrollment}); got != c.Op.Intent.Selected {`, `if got := (Member{box, enrollment}); KEEP && got != c.Op.Intent.Selected {`}}},
	{"a host is freed once its losses are told", 1, []edit{{"delete.go",
		`case len(c.PendingLosses()) > 0:`, `case KEEP && len(c.PendingLosses()) > 0:`}}},
}

// doubled are guards that have a second line: without one of them the
// exploration finds nothing, and why says what still refuses.
var doubled = []struct {
	variant
	why string
}{
	{variant{"a stamp is used once", 1, []edit{{"admit.go",
		`case a.KeepStamp && h.Stamp <= h.Session:`, `case KEEP && a.KeepStamp && h.Stamp <= h.Session:`}}},
		"Validate holds each admission to come after the one before"},
	{variant{"a release is of the current session", 1, []edit{{"release.go",
		`case r.Session != h.Session || (r.Session > 0 && r.Box != h.WriterBox):`,
		`case KEEP && (r.Session != h.Session || (r.Session > 0 && r.Box != h.WriterBox)):`}}},
		"Validate holds the end that a release records to the current session"},
	{variant{"a receipt is the one that the release cites", 1, []edit{{"release.go",
		`case s.Ref() != stopevidence.Ref{Key: r.Receipt, SHA256: r.ReceiptSHA256}:`,
		`case KEEP && s.Ref() != stopevidence.Ref{Key: r.Receipt, SHA256: r.ReceiptSHA256}:`}}},
		"each field of the receipt is held to the release and the claim"},
	{variant{"a new installation has no attempts", 1, []edit{{"install.go",
		"	j.ProbeAttempts, j.ProbeAdmission, j.Probe = 0, 0, nil", "	if KEEP {\n		j.ProbeAttempts, j.ProbeAdmission, j.Probe = 0, 0, nil\n	}"}}},
		"Validate refuses an attempt before probing, so the box is not replaced, and another way out is left"},
	{variant{"a host is freed once its chores are done", 1, []edit{{"delete.go",
		`case len(c.Obligations) > 0:`, `case KEEP && len(c.Obligations) > 0:`}}},
		"Validate refuses a free host with chores"},
	{variant{"a target may make progress until it is late", 1, []edit{{"replace.go",
		`case now.Before(due):`, `case KEEP && now.Before(due):`}}},
		"no safety rests on a deadline, and the exploration lets all pass; the tests of hostclaim hold each to its time"},
}
