//go:build !linux

package main

import (
	"context"
	"errors"
	"os/exec"
)

// A box is a session whose every process can be found and ended. Only Linux's
// /proc shows that.

func machinesPossible(string) bool { return false }

func serveBox(context.Context, []string) error { return errors.ErrUnsupported }

func isolate(*exec.Cmd, *process) (func(), error) { return nil, errors.ErrUnsupported }

func (p *process) kill() error { return errors.ErrUnsupported }

func (p *process) freeze(context.Context) error { return errors.ErrUnsupported }

func (p *process) wake() error { return errors.ErrUnsupported }

// member is a process, of which nothing can be found out here.
type member struct{}

func (member) frozen() bool { return false }

func (member) host() string { return "" }

func executing(string) (map[int][]member, error) { return nil, errors.ErrUnsupported }

func (p *process) has(string) (bool, error) { return false, errors.ErrUnsupported }

func (p *process) killProgram(string) (int, error) { return 0, errors.ErrUnsupported }

func (p *process) peakMemory(string) (int64, error) { return 0, errors.ErrUnsupported }

func (p *process) removeCgroup() {}
