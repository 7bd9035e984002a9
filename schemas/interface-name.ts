/**
 * Names that interfaces of a Linux machine have, or that no interface can have or be given. A VPN
 * network and the file of a peer each become an interface of their name.
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

/**
 * True if another program gives its interfaces this name, or if the kernel allows none of this
 * name.
 */
export const isInterfaceOfOthers = (name: string): boolean => known.test(name);

/**
 * Words of `ip link add <name>`, which `wg-quick` runs, of `wg show <name>`, and of the sections in
 * strongSwan's files (ip-link(8), wg(8), strongswan.conf(5)).
 */
const words = [
  'up|down|name|dev|index|brd|qlen|mtu|netns|multicast|allmulticast|promisc|trailers|arp|carrier|vf|vrf|group|mode',
  'state|protodown|protodown_reason|parentdev|parentbus|xdp|xdpdrv|xdpgeneric|xdpoffload|g[rs]o_.*|interfaces|include',
].join('|');

/** Those that `ip` also takes when their end is missing. */
const shortened = [
  ...['link', 'link-netnsid', 'address', 'addrgenmode', 'broadcast', 'txqueuelen', 'txqlen', 'master', 'nomaster'],
  ...['dynamic', 'type', 'alias', 'numtxqueues', 'numrxqueues', 'help'],
];

const word = new RegExp(`^(?:${words})$`);

/** True if a command that gets the name of the interface takes it for a word of its own. */
export const isWordOfCommands = (name: string): boolean =>
  word.test(name) || shortened.some((whole) => whole.startsWith(name));
