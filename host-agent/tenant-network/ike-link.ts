/**
 * The interface of strongSwan's plugin kernel-libipsec, which encrypts in its own process: it is
 * moved into the router namespace, while the daemon's sockets stay in the host's. In its place the
 * host gets an interface of the same name that leads nowhere: the daemon takes a device only if it
 * can add a route to it, from an address of the host that the device reaches.
 */
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { ikeLinkOf, ipsecName } from './link-names.ts';
import { inRouter } from './namespaces.ts';
import { runTool } from './tools.ts';

const Link = Type.Object({
  ifname: Type.String(),
  ifalias: Type.Optional(Type.String()),
  linkinfo: Type.Optional(Type.Object({ info_kind: Type.Optional(Type.String()) })),
  addr_info: Type.Optional(Type.Array(Type.Object({ local: Type.Optional(Type.String()) }))),
});
type Link = Static<typeof Link>;
const decodeLinks = decoder(Type.Array(Link));
const decodeRoutes = decoder(Type.Array(Type.Object({ dst: Type.String() })));

const aliasOf = (router: string): string => `longshore ${router}`;

/**
 * @param own addresses of the stand-in
 * @param addresses of devices that are there
 */
export async function keepIkeLink(router: string, own: readonly string[], addresses: readonly string[]): Promise<void> {
  const link = ikeLinkOf(router);
  const links = await linksHere();
  const tun = links.find(({ ifname, linkinfo }) => ipsecName.test(ifname) && linkinfo?.info_kind === 'tun')?.ifname;
  if (tun !== undefined) {
    await runTool(['ip', 'link', 'set', tun, 'netns', router, 'name', link]);
    await runTool(['ip', '-n', router, 'link', 'set', link, 'alias', tun, 'up']);
  }
  const moved = await runTool(['ip', '-n', router, '-j', 'link', 'show', link]).catch(() => '[]');
  // The name that it had: the daemon still calls it so.
  const name = decodeLinks(Buffer.from(moved))[0]?.ifalias;
  if (name === undefined)
    throw new Error('strongSwan has no interface: load its plugin kernel-libipsec, and restart it');
  await keepStandIn(router, links, name, own);
  await keepRoutes(router, link, addresses);
}

/** Takes the stand-in away. */
export const withoutStandIn = async (router: string): Promise<void> =>
  keepStandIn(router, await linksHere(), undefined, []);

async function keepStandIn(
  router: string,
  links: readonly Link[],
  name: string | undefined,
  addresses: readonly string[],
): Promise<void> {
  const standIns = links.filter(({ ifalias }) => ifalias === aliasOf(router));
  const standIn = standIns.find(({ ifname }) => ifname === name);
  const has = new Set(standIn?.addr_info?.map(({ local }) => local));
  const missing = addresses.filter((address) => !has.has(address));
  const lines = [
    ...standIns.filter((each) => each !== standIn).map(({ ifname }) => `link delete ${ifname}`),
    ...(name === undefined || standIn !== undefined
      ? []
      : [
          `link add ${name} type bridge`,
          `link set ${name} alias "${aliasOf(router)}"`,
          `link set ${name} addrgenmode none`,
          `link set ${name} up`,
        ]),
    ...missing.map((address) => `addr replace ${address} dev ${name} nodad`),
  ];
  if (lines.length > 0) await runTool(['ip', '-batch', '-'], { input: `${lines.join('\n')}\n` });
}

const linksHere = async (): Promise<readonly Link[]> =>
  decodeLinks(Buffer.from(await runTool(['ip', '-d', '-j', 'address', 'show'])));

async function keepRoutes(router: string, link: string, addresses: readonly string[]): Promise<void> {
  const script = `ip -j -4 route show dev ${link} && echo -- && ip -j -6 route show dev ${link} proto static`;
  const printed = await runTool(inRouter(router, ['sh', '-c', script]));
  const there = new Set(
    printed
      .split('--\n')
      .flatMap((text) => (text.trim() === '' ? [] : decodeRoutes(Buffer.from(text)).map(({ dst }) => dst))),
  );
  const wanted = new Set(addresses);
  const lines = [
    ...[...there].filter((dst) => !wanted.has(dst)).map((dst) => `route delete ${dst} dev ${link}`),
    ...[...wanted].filter((dst) => !there.has(dst)).map((dst) => `route replace ${dst} dev ${link} proto static`),
  ];
  if (lines.length === 0) return;
  await runTool(['ip', '-n', router, '-batch', '-'], { input: `${lines.join('\n')}\n` });
}
