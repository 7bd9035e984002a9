/**
 * Proxy auto-config: a script that a browser runs for every request. It contains our own lines and
 * three literals, in ES3 and ASCII for the oldest browsers. Only the host decides, because browsers
 * pass different parts of a URL.
 */
import type { NetworkRecord, Proxy } from '../../../schemas/api/network.ts';
import { fitHost, fitPort } from './fit.ts';
import { bracketed } from '../../../schemas/host-name.ts';

/**
 * JSON is JavaScript except for U+2028 and U+2029. Characters of markup are escaped too, in case a
 * page shows the script.
 */
const literal = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/[<>&/]|[^\u{20}-\u{7E}]/gu, (character) =>
    Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  );

const domain = (text: string): string => text.toLowerCase().replace(/^\.+|\.+$/g, '');

/**
 * Some clients know SOCKS version 5 by its number, others as plain SOCKS. `; DIRECT` exposes what
 * the proxy should hide.
 */
function answerOf({ type, host, port, direct_fallback: mayGoDirect }: Proxy): string {
  const place = `${bracketed(fitHost(host))}:${fitPort(port)}`;
  const proxies = {
    PROXY: [`PROXY ${place}`],
    HTTPS: [`HTTPS ${place}`],
    SOCKS5: [`SOCKS5 ${place}`, `SOCKS ${place}`],
  };
  return [...proxies[type], ...(mayGoDirect ? ['DIRECT'] : [])].join('; ');
}

const direct = 'function FindProxyForURL(url, host) {\n  return "DIRECT";\n}\n';

export function pac({ settings: { proxy } }: NetworkRecord): string {
  if (proxy === null) return direct;
  return `var answer = ${literal(answerOf(proxy))};
var through = ${literal(proxy.domains.map(domain))};
var around = ${literal(proxy.exclude.map(domain))};

function within(host, domains) {
  for (var i = 0; i < domains.length; i++) {
    var end = "." + domains[i];
    if (host === domains[i] || host.slice(-end.length) === end) {
      return true;
    }
  }
  return false;
}

function isNear(host) {
  return (host.indexOf(".") < 0 && host.indexOf(":") < 0) || within(host, ["localhost"]) || host === "::1" ||
    /^(::ffff:)?127\\.[0-9]+\\.[0-9]+\\.[0-9]+$/.test(host) || /^::ffff:7f[0-9a-f][0-9a-f]:[0-9a-f]+$/.test(host);
}

function FindProxyForURL(url, host) {
  var name = String(host).toLowerCase().replace(/^\\[|\\]$/g, "").replace(/\\.$/, "");
  if (isNear(name) || within(name, around)) {
    return "DIRECT";
  }
  return through.length === 0 || within(name, through) ? answer : "DIRECT";
}
`;
}
