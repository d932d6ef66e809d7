package console

import (
	"context"
	"fmt"
	"io"

	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/roster"
)

// place is where a region is.
type place struct {
	Account   string `help:"The cloud account that its boxes run in: 12 digits." placeholder:"ID" required:"" env:"-"`
	AWSRegion string `name:"aws-region" help:"The cloud region that it is, such as eu-west-1." placeholder:"NAME" required:"" env:"-"`
	Data      string `help:"Store URL of the region's data bucket." placeholder:"URL" required:"" env:"-"`
	GroupName string `help:"Its Auto Scaling group: boxes that it launched are enrolled without a person." placeholder:"NAME" env:"-"`
	GroupARN  string `name:"group-arn" help:"The ARN of that group." placeholder:"ARN" env:"-"`
}

func (p place) region() roster.Region {
	return roster.Region{Account: p.Account, AWSRegion: p.AWSRegion, Data: p.Data, GroupName: p.GroupName, GroupARN: p.GroupARN}
}

type regionListCommand struct {
	config.Deployment
	output
}

// Run prints the regions.
func (cmd *regionListCommand) Run(ctx context.Context, s *session) error {
	c, err := s.open(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	regions, err := c.Regions(ctx)
	if err != nil {
		return err
	}
	return show(s.Stdout, cmd.output, regions, printRegions)
}

func printRegions(w io.Writer, regions []Region) error {
	rows := [][]string{{"REGION", "ACCOUNT", "CLOUD REGION", "BOXES", "GROUP", "DATA"}}
	for _, r := range regions {
		rows = append(rows, []string{r.Code, r.Account, r.AWSRegion, fmt.Sprint(r.Boxes), orDash(r.GroupName), r.Data})
	}
	return table(w, rows)
}

type regionSetCommand struct {
	config.Deployment
	Code             string `arg:"" help:"Placement code of the region, such as ie."`
	RosterPrivateKey string `help:"File of the key that signs the roster." placeholder:"FILE" required:""`
	place
}

// Help says what the command does that its name does not.
func (regionSetCommand) Help() string {
	return `Adds a region, or changes the Auto Scaling group of one that is there. Everything else of a region is for ever.`
}

// Run sets the region.
func (cmd *regionSetCommand) Run(ctx context.Context, s *session) error {
	c, err := s.openToSign(ctx, cmd.Deployment, cmd.RosterPrivateKey)
	if err != nil {
		return err
	}
	if _, _, err := s.Open(ctx, cmd.Data); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	if err := c.SetRegion(ctx, cmd.Code, cmd.region()); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "region %s is %s of account %s, with data in %s and group %s\n",
		cmd.Code, cmd.AWSRegion, cmd.Account, cmd.Data, orDash(cmd.GroupName))
	return nil
}
