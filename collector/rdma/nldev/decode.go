package nldev

import (
	"errors"
	"strings"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"
)

var errNoTable = errors.New("the table is missing")

// text is a string attribute that is valid UTF-8 whatever a driver wrote.
func text(ad *netlink.AttributeDecoder) string {
	var s string
	ad.Do(func(b []byte) error {
		s = strings.ToValidUTF8(nlenc.String(b), "_")
		return nil
	})
	return s
}

// attributes decodes all attributes of a payload with f. An attribute's type
// comes without NLA_F_NESTED: the kernel leaves the flag out of the RES_*
// nests and sets it in those of STAT_GET (nla_nest_start_noflag).
func attributes(payload []byte, f func(ad *netlink.AttributeDecoder)) error {
	ad, err := netlink.NewAttributeDecoder(payload)
	if err != nil {
		return err
	}
	for ad.Next() {
		f(ad)
	}
	return ad.Err()
}

func ignore(*netlink.AttributeDecoder) {}

// table decodes the entries of a nested table in the messages of an answer.
// Each entry comes with the device that its message named before the table
// (the kernel writes it first, fill_nldev_handle). other sees the remaining
// attributes. An entry that cannot be decoded is an EntryError and loses no
// other; bytes after which nothing can be read lose the rest of their message.
func table(msgs []netlink.Message, tableAttr, entryAttr uint16,
	other func(ad *netlink.AttributeDecoder), entry func(device Handle, b []byte) error,
) error {
	var errs entryErrors
	for i := range msgs {
		var id identity
		n, found := 0, false
		err := attributes(msgs[i].Data, func(ad *netlink.AttributeDecoder) {
			switch {
			case ad.Type() == tableAttr:
				found = true
				ad.Nested(func(nested *netlink.AttributeDecoder) error {
					for nested.Next() {
						if nested.Type() != entryAttr {
							continue
						}
						nested.Do(func(b []byte) error {
							errs.add(i, n, entry(id.Handle, b))
							n++
							return nil
						})
					}
					return nil
				})
			case !id.take(ad):
				other(ad)
			}
		})
		if err == nil && !found {
			err = errNoTable
		}
		errs.add(i, n, errors.Join(err, id.err()))
	}
	return errs.err()
}

// identity is what every answer says of the device it is about.
type identity struct {
	Handle
	indexed bool
}

// take says whether the attribute was one of its own.
func (id *identity) take(ad *netlink.AttributeDecoder) bool {
	switch ad.Type() {
	case attrDevIndex:
		id.Index, id.indexed = ad.Uint32(), true
	case attrDevName:
		id.Name = text(ad)
	default:
		return false
	}
	return true
}

func (id *identity) err() error {
	switch {
	case !id.indexed:
		return errors.New("DEV_INDEX is missing")
	case id.Name == "":
		return errors.New("DEV_NAME is missing")
	}
	return nil
}
