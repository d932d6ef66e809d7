// Package hostfiles decides which files a host has: the files directory of its
// app and the few files of the platform (the instance key, the env file, the
// wake state), published to the object store by one session and restored from
// it by the next.
//
// Object versions do not say which update wins, so no object is ever
// overwritten and one [Manifest] per generation decides. A generation is one
// key prefix that one admitted session writes. A manifest is a base (an
// immutable list of entries) and the entries that changed since, at most 1,000;
// beyond that they are folded into a new base, so one change in a tree of
// 100,000 files writes kilobytes.
//
// A generation begins in one of three ways: [AdmitCopy] copies the files pin,
// [OpenPrepared] opens a prepared generation that [WritePrepared] built, or,
// where there is evidence that no files exist anywhere, it begins empty.
// [EnsureInstanceKey] comes next, then [New] and the app's start, in that order.
//
// # Guarantees
//
//   - A manifest names only objects that are durable, each under its holder's
//     location, and each named by the manifest before it or made by this session.
//   - A manifest is created once and then only replaced by If-Match, with a
//     greater sequence. A publisher whose manifest moved under it writes nothing
//     more.
//   - A publisher writes no key outside its generation.
//   - What was published and is restored is the same tree: directories (empty
//     ones too), files, symlinks as links, modes and times.
//   - A file whose content an object of the manifest already holds is not
//     uploaded again, whatever session uploaded it.
//   - Restore writes nothing outside the two directories that it was given, and
//     leaves the whole tree or none of it.
//   - An instance key is published before anyone sees it and never replaced.
//
// # Not guaranteed
//
// Whether the session may still write is for its caller to know: Config.Check
// is asked before every write. Hard links are restored as separate files;
// extended attributes, and the times of symlinks, are not kept. A file that
// never holds still is published as it was read and flagged torn. On systems
// other than Linux an unchanged file is known by size and time alone.
package hostfiles
