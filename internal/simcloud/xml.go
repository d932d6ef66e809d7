package simcloud

import (
	"encoding/xml"
	"time"
)

const (
	xmlns        = "http://ec2.amazonaws.com/doc/2016-11-15/"
	imageID      = "ami-0123456789abcdef0"
	instanceType = "t3.micro"
)

type errorReply struct {
	XMLName   xml.Name `xml:"Response"`
	Code      string   `xml:"Errors>Error>Code"`
	Message   string   `xml:"Errors>Error>Message"`
	RequestID string   `xml:"RequestID"`
}

type describeReply struct {
	XMLName      xml.Name      `xml:"DescribeInstancesResponse"`
	Xmlns        string        `xml:"xmlns,attr"`
	RequestID    string        `xml:"requestId"`
	Reservations []reservation `xml:"reservationSet>item"`
	NextToken    string        `xml:"nextToken,omitempty"`
}

type reservation struct {
	ID        string         `xml:"reservationId"`
	OwnerID   string         `xml:"ownerId,omitempty"`
	Instances []instanceItem `xml:"instancesSet>item"`
}

type instanceItem struct {
	ID         string  `xml:"instanceId"`
	ImageID    string  `xml:"imageId"`
	State      *state  `xml:"instanceState"`
	Reason     string  `xml:"reason"`
	Type       string  `xml:"instanceType"`
	LaunchTime string  `xml:"launchTime"`
	Zone       string  `xml:"placement>availabilityZone"`
	Tenancy    string  `xml:"placement>tenancy"`
	Address    *string `xml:"privateIpAddress"` // absent once terminated
	RootDevice string  `xml:"rootDeviceName"`
	Mapping    mapping `xml:"blockDeviceMapping"`
}

// mapping is there though it is empty, as on EC2.
type mapping struct {
	Devices []device `xml:"item"`
}

type device struct {
	Name                string `xml:"deviceName"`
	VolumeID            string `xml:"ebs>volumeId"`
	Status              string `xml:"ebs>status"`
	AttachTime          string `xml:"ebs>attachTime"`
	DeleteOnTermination bool   `xml:"ebs>deleteOnTermination"`
}

type state struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type transitionReply struct {
	XMLName   xml.Name
	Xmlns     string        `xml:"xmlns,attr"`
	RequestID string        `xml:"requestId"`
	Changes   []stateChange `xml:"instancesSet>item"`
}

type stateChange struct {
	ID       string `xml:"instanceId"`
	Current  *state `xml:"currentState"`
	Previous *state `xml:"previousState"`
}

func stateOf(name string) *state { return &state{stateCodes[name], name} }

func newReservation(s seen) reservation {
	item := instanceItem{
		ID: s.id, ImageID: imageID, State: stateOf(s.state), Type: instanceType,
		LaunchTime: s.launched.UTC().Format(time.RFC3339), Zone: s.zone(), Tenancy: "default",
		RootDevice: rootDevice,
	}
	for _, v := range s.disks {
		item.Mapping.Devices = append(item.Mapping.Devices, device{Name: v.Device, VolumeID: v.ID,
			Status: s.attachment(), AttachTime: v.attached.UTC().Format(time.RFC3339), DeleteOnTermination: v.DeleteOnTermination})
	}
	if s.state != Terminated {
		item.Address = &s.address
	}
	return reservation{ID: "r-" + s.id[len("i-"):], OwnerID: s.account, Instances: []instanceItem{item}}
}

// bend applies a fault of the kinds that change a describe's reply.
func (r *describeReply) bend(fault string) {
	switch fault {
	case Empty:
		r.Reservations, r.NextToken = nil, ""
	case Partial:
		r.NextToken = pageToken("more")
	case NoOwner:
		for i := range r.Reservations {
			r.Reservations[i].OwnerID = ""
		}
	case NoState:
		for i := range r.Reservations {
			r.Reservations[i].Instances[0].State = nil
		}
	}
}
