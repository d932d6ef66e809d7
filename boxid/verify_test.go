package boxid_test

import (
	"crypto/fips140"
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/record"
)

// refusals is every rule of Enroll, in the order in which it decides.
var refusals = []struct {
	name   string
	spoil  func(*attempt)
	reason string
}{
	{"the reference is not one label", func(a *attempt) { a.expect.Box = "box.1" }, "bad box reference"},
	{"no region is expected", func(a *attempt) { a.expect.AWSRegion = "" }, "no cloud region is expected"},
	{"one field more", func(a *attempt) { a.unstrict = true }, "malformed record"},
	{"another version", func(a *attempt) { a.record.V = 2 }, "record version 2, expected 1"},
	{"another box", func(a *attempt) { a.record.Box = "box-2" }, `the record names box "box-2"`},
	{"an unreadable document", func(a *attempt) { a.garbled = true }, "identity document:"},
	{"no certificate", func(a *attempt) { a.verifier.Certs = nil }, "no certificate for the document's region"},
	{"a bad signature", func(a *attempt) { a.tampered = true }, "bad signature"},
	{"no instance", func(a *attempt) { a.cloud.InstanceID = "" }, "the document names no instance"},
	{"another account", func(a *attempt) { a.cloud.Account = "999999999999" }, `account "999999999999"`},
	{"a certified but wrong region", func(a *attempt) { a.cloud.Region = "eu-west-2" }, `region "eu-west-2"`},
	{"another instance than expected", func(a *attempt) { a.expect.InstanceID = "i-other" }, `the operator expects "i-other"`},
	{"the reference is another instance", func(a *attempt) {
		other := self
		other.InstanceID = "i-other"
		a.expect.Roster = append(a.expect.Roster, boxid.Enrolled{Box: ref, Cloud: other})
	}, "the reference is enrolled as"},
	{"the instance has another reference", func(a *attempt) {
		a.expect.Roster = append(a.expect.Roster, boxid.Enrolled{Box: "box-9", Cloud: self})
	}, `is enrolled under "box-9"`},
}

func TestEnrollRefuses(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			a := newAttempt()
			r.spoil(a)
			evidence, err := a.enroll(t)
			require.ErrorIs(t, err, boxid.ErrUnverified)
			require.ErrorContains(t, err, r.reason)
			require.Zero(t, evidence)
		})
	}
}

// Each attempt breaks one rule and every later one: the earliest must speak.
func TestEnrollRefusesInOrder(t *testing.T) {
	for i, first := range refusals {
		t.Run(first.name, func(t *testing.T) {
			a := newAttempt()
			for _, r := range refusals[i:] {
				r.spoil(a)
			}
			_, err := a.enroll(t)
			require.ErrorContains(t, err, first.reason)
		})
	}
}

func TestEnrollAcceptsAnExpectedInstance(t *testing.T) {
	a := newAttempt()
	raw := a.raw(t)
	evidence, err := a.verifier.Enroll(raw, a.expect)
	require.NoError(t, err)
	require.Equal(t, ref, evidence.Box())
	require.Equal(t, self, evidence.Cloud())
	require.Equal(t, record.Digest(raw), evidence.SHA256())
	require.True(t, evidence.Bound())
}

func TestEvidenceIsBoundOnlyByTheOperator(t *testing.T) {
	a := newAttempt()
	a.expect.InstanceID = ""
	evidence, err := a.enroll(t)
	require.NoError(t, err)
	require.False(t, evidence.Bound())
}

func TestAnEntryWithNoCloudDoesNotRefuseItsOwnReference(t *testing.T) {
	a := newAttempt()
	a.expect.Roster = []boxid.Enrolled{{Box: ref}, {Box: "box-2"}}
	_, err := a.enroll(t)
	require.NoError(t, err)
}

func TestABoxThatIsEnrolledAsThisInstanceVerifiesAgain(t *testing.T) {
	a := newAttempt()
	a.expect.Roster = []boxid.Enrolled{{Box: ref, Cloud: self}}
	_, err := a.enroll(t)
	require.NoError(t, err)
}

func TestACopiedRecordIsRefusedBecauseTheRosterHoldsItsInstance(t *testing.T) {
	a := newAttempt()
	a.record.Box, a.expect.Box = "box-b", "box-b" // A's record under B's key, its box rewritten
	_, err := a.enroll(t)
	require.NoError(t, err, "the box is not signed: the record itself verifies")

	a.expect.Roster = []boxid.Enrolled{{Box: "box-a", Cloud: self}}
	_, err = a.enroll(t)
	require.ErrorContains(t, err, `is enrolled under "box-a"`)
}

func TestAnEmptyExpectationNeverMatches(t *testing.T) {
	for name, empty := range map[string]func(*attempt){
		"no account on either side": func(a *attempt) { a.verifier.Account, a.cloud.Account = "", "" },
		"no region on either side":  func(a *attempt) { a.expect.AWSRegion, a.cloud.Region = "", "" },
		"no certificate at all":     func(a *attempt) { a.verifier.Certs[awsRegion] = nil },
		"nothing is expected":       func(a *attempt) { a.verifier, a.expect = boxid.Verifier{}, boxid.Expect{} },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempt()
			empty(a)
			_, err := a.enroll(t)
			require.ErrorIs(t, err, boxid.ErrUnverified)
		})
	}
}

func TestNoRegionHasACertificate(t *testing.T) {
	a := newAttempt()
	a.verifier.Certs[""], a.cloud.Region = boxidtest.Cert(), ""
	_, err := a.enroll(t)
	require.ErrorContains(t, err, "no certificate for the document's region")
}

func TestTheDocumentIsVerifiedByteForByte(t *testing.T) {
	a := newAttempt()
	rec := a.record
	rec.IdentityDocument = boxidtest.Document(self)
	rec.IdentitySignature = boxidtest.Sign(rec.IdentityDocument)
	rec.IdentityDocument = append(rec.IdentityDocument, '\n') // what an editor would add
	raw, err := record.Encode(rec)
	require.NoError(t, err)
	_, err = a.verifier.Enroll(raw, a.expect)
	require.ErrorContains(t, err, "bad signature")
}

func TestTheAlgorithmIsNotTheCertificatesOwn(t *testing.T) {
	a := newAttempt()
	cert := *boxidtest.Cert()
	cert.SignatureAlgorithm = x509.SHA1WithRSA // as one of AWS's own is
	a.verifier.Certs[awsRegion] = &cert
	_, err := a.enroll(t)
	require.NoError(t, err)
}

func TestABadSignatureIsNotBlamedOnFIPSWhereNothingIsEnforced(t *testing.T) {
	if fips140.Enforced() {
		t.Skip("this process enforces it")
	}
	a := newAttempt()
	a.tampered = true
	_, err := a.enroll(t)
	require.ErrorContains(t, err, "bad signature")
	require.NotContains(t, err.Error(), "fips140")
}

// Enforcement is chosen when a process starts, so the test runs itself again.
func TestFIPSEnforcementIsNamedInTheError(t *testing.T) {
	if !fips140.Enforced() {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), "GODEBUG=fips140=only")
		out, err := again.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	fips140.WithoutEnforcement(func() { boxidtest.Cert() })
	_, err := newAttempt().enroll(t)
	require.ErrorIs(t, err, boxid.ErrUnverified)
	require.ErrorContains(t, err, "GODEBUG=fips140=only")
}
