package hostfiles

// FoldAt makes p fold its changes beyond n of them.
func FoldAt(p *Publisher, n int) { p.foldAt = n }

// Limits of a manifest.
const (
	MaxChanges = maxChanges
	BlockSize  = blockSize
)
