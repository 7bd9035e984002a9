/**
 * Names that interfaces of a Linux machine have, or that no interface can have. A VPN network and
 * the file of a peer each become an interface of their name.
 */

/** The kernel keeps these for settings of all interfaces, and a file beside them in sysfs. */
const kernel = 'lo|all|default|bonding_masters';

/** Drivers, containers, routers and other VPN programs number theirs: `eth0`, `wg1`. */
const numbered = [
  'bond|bridge|cni|dummy|erspan|gre|gretap|ib|if|ifb|ip_vti|ip6_vti|ip6gre|ip6tnl|ipvlan|lxcbr|lxdbr|macsec',
  'macvlan|macvtap|mlan|nlmon|podman|ra|rmnet|sit|sl|tailscale|team|tunl|usb|utun|vlan|vmbr|vmnet|vnet|vti',
  'vxlan|wwan|xfrm',
].join('|');

/** Of these also without a number, as routers name them. */
const bare = 'br|eth|ipsec|lan|ppp|tap|tun|wan|wg|wlan';

/** Docker, Kubernetes and libvirt add a name or an id. */
const withId = '(?:docker|ipsec|veth|virbr).*|br-.*|cali[0-9a-f]{11}';

/** systemd's names of network cards: systemd.net-naming-scheme(7). */
const ofCards = '(?:en|ib|sl|wl|ww)(?:[a-z]\\d[a-z0-9]*|x[0-9a-f]{12})';

const known = new RegExp(`^(?:${kernel}|(?:${numbered})\\d+|(?:${bare})\\d*|${withId}|${ofCards})$`, 'i');

/** Whether another program names its interfaces so, or the kernel has none of this name. */
export const isInterfaceOfOthers = (name: string): boolean => known.test(name);
