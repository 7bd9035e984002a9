/**
 * Proxy auto-config: a script that a browser runs for every request, so it holds our own lines and
 * three literals. ES3 and ASCII, for the oldest that still reads one. The decision is made by the
 * host alone; what a browser tells of a URL differs.
 */
import type { NetworkRecord, Proxy } from '../../../schemas/api/network.ts';
import { fitHost, fitPort } from './fit.ts';
import { bracketed } from './host.ts';

/**
 * JSON is JavaScript but for U+2028 and U+2029; and no character of markup is left, whatever shows
 * the script.
 */
const literal = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/[<>&/]|[^\u{20}-\u{7E}]/gu, (character) =>
    Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  );

const domain = (text: string): string => text.toLowerCase().replace(/^\.+|\.+$/g, '');

/**
 * Some clients know version 5 by its number, others by the plain word. `; DIRECT` lets out what was
 * to be hidden.
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
