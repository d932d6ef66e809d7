// Package config reads the settings of the three binaries: one setting is the
// flag --data-dir, the environment variable REGIONHA_DATA_DIR and the YAML key
// data-dir.
//
// A binary describes its settings as a kong struct that embeds [Base] and,
// where it has them, [Deployment], [Admin] and [SecretFile], and calls [Parse].
//
// # Guarantees
//
// A flag beats the environment, which beats the file, which beats the default.
//
// Nothing is ignored: a key that is no setting of the binary, a key that stands
// twice, a value of another form are errors that name file and line.
//
// Secrets are given as paths of files only, so that neither a process list nor
// a settings file holds one.
//
// [ExitCode] is the contract with scripts: 0 done, 1 refused or failed, 2 the
// command line or the settings are wrong and nothing was tried.
package config
