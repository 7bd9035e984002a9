import { runInNewContext } from 'node:vm';
import { Linter } from 'eslint';
import fc from 'fast-check';
import t from 'tap';
import { pac } from '../../../../gateway/vpn/render/pac.ts';
import { Unfit } from '../../../../gateway/vpn/render/fit.ts';
import type { Proxy } from '../../../../schemas/api/network.ts';
import { breaking, label, nasty, networkWith } from '../support.ts';

const proxy: Proxy = {
  type: 'PROXY',
  host: 'proxy.example.com',
  port: 3128,
  domains: [],
  exclude: [],
  direct_fallback: false,
};

const scriptOf = (change: Partial<Proxy> = {}): string => pac(networkWith({ proxy: { ...proxy, ...change } }));

const standard = [
  'isPlainHostName',
  'dnsDomainIs',
  'localHostOrDomainIs',
  'isResolvable',
  'isInNet',
  'dnsResolve',
  'myIpAddress',
  'dnsDomainLevels',
  'shExpMatch',
  'weekdayRange',
  'dateRange',
  'timeRange',
  'alert',
];

/**
 * The functions that a browser gives to a script; ours must need none of them, since some of them
 * ask the DNS.
 */
function run(script: string): (host: string, url?: string) => unknown {
  const called: string[] = [];
  const environment = Object.fromEntries(standard.map((name) => [name, () => called.push(name)]));
  const context: Record<string, unknown> = { ...environment };
  const find = runInNewContext(`${script}\nFindProxyForURL`, context) as (url: string, host: string) => unknown;
  return (host, url = `https://${host}/`) => {
    const answer = find(url, host);
    if (called.length > 0) throw new Error(`called ${called.join()}`);
    return answer;
  };
}

const through = 'PROXY proxy.example.com:3128';

t.test('hosts that go through the proxy', (t) => {
  const find = run(
    scriptOf({
      domains: ['Corp.Example', 'example.org', '10.1.2.3'],
      exclude: ['open.corp.example', 'cdn.example.org.'],
    }),
  );
  const everyone = run(scriptOf());
  const table: readonly (readonly [host: string, listed: boolean, all: boolean])[] = [
    ['corp.example', true, true],
    ['www.corp.example', true, true],
    ['a.b.c.corp.example', true, true],
    ['CORP.EXAMPLE', true, true],
    ['Www.Corp.Example', true, true],
    ['corp.example.', true, true],
    ['www.corp.example.', true, true],
    ['notcorp.example', false, true],
    ['corp.example.com', false, true],
    ['xcorp.example', false, true],
    ['corp-example', false, false],
    ['example', false, false],
    ['open.corp.example', false, true],
    ['www.open.corp.example', false, true],
    ['OPEN.corp.example.', false, true],
    ['reopen.corp.example', true, true],
    ['example.org', true, true],
    ['cdn.example.org', false, true],
    ['x.cdn.example.org', false, true],
    ['xcdn.example.org', true, true],
    ['example.net', false, true],
    ['10.1.2.3', true, true],
    ['110.1.2.3', false, true],
    ['10.1.2.30', false, true],
    ['192.168.1.1', false, true],
    ['2001:db8::1', false, true],
    ['[2001:db8::1]', false, true],
    ['localhost', false, false],
    ['LOCALHOST', false, false],
    ['localhost.', false, false],
    ['app.localhost', false, false],
    ['localhost.corp.example', true, true],
    ['notlocalhost.com', false, true],
    ['127.0.0.1', false, false],
    ['127.255.255.254', false, false],
    ['127.evil.example', false, true],
    ['127.0.0.1.example.org', true, true],
    ['128.0.0.1', false, true],
    ['1127.0.0.1', false, true],
    ['::1', false, false],
    ['[::1]', false, false],
    ['::ffff:127.0.0.1', false, false],
    ['[::ffff:7f00:1]', false, false],
    ['::ffff:8f00:1', false, true],
    ['::11', false, true],
    ['printer', false, false],
    ['intranet', false, false],
    ['PRINTER', false, false],
    ['xn--bcher-kva.example.org', true, true],
    ['', false, false],
  ];
  t.ok(table.length >= 40);
  for (const [host, listed, all] of table) {
    t.equal(find(host), listed ? through : 'DIRECT', `listed: ${host}`);
    t.equal(everyone(host), all ? through : 'DIRECT', `all: ${host}`);
  }
  t.end();
});

t.test('the host alone decides', (t) => {
  const find = run(scriptOf({ domains: ['corp.example'] }));
  t.equal(find('corp.example', 'http://other.example/'), through);
  t.equal(find('other.example', 'https://corp.example/corp.example?corp.example'), 'DIRECT');
  t.end();
});

t.test('each kind of proxy, and the way past it', (t) => {
  const answer = (change: Partial<Proxy>) => run(scriptOf(change))('a.example');
  t.equal(answer({ type: 'HTTPS' }), 'HTTPS proxy.example.com:3128');
  t.equal(answer({ type: 'SOCKS5' }), 'SOCKS5 proxy.example.com:3128; SOCKS proxy.example.com:3128');
  t.equal(answer({ direct_fallback: true }), `${through}; DIRECT`);
  t.notMatch(scriptOf(), /; DIRECT/);
  t.equal(answer({ host: 'fd00::1' }), 'PROXY [fd00::1]:3128');
  t.equal(answer({ host: '192.0.2.1', port: 65535 }), 'PROXY 192.0.2.1:65535');
  t.end();
});

t.test('without a proxy everything goes its own way', (t) => {
  const find = run(pac(networkWith()));
  for (const host of ['a.example', 'localhost', '10.0.0.1', '']) t.equal(find(host), 'DIRECT', host || 'none');
  t.end();
});

t.test('the script is ES3 and ASCII', (t) => {
  const linter = new Linter();
  const es3 = (script: string) =>
    linter.verify(script, [{ languageOptions: { ecmaVersion: 3, sourceType: 'script' } }]);
  for (const script of [pac(networkWith()), scriptOf({ domains: ['a.example'], exclude: ['b.example'] })]) {
    t.match(script, /^[\n -~]+$/);
    t.same(es3(script), []);
    t.match(script, /^function FindProxyForURL\(url, host\) \{$/m);
  }
  t.not(es3('let a = 1;').length, 0, 'the parser knows what is newer');
  t.not(es3('var a = { get b() { return 1; } };').length, 0);
  t.end();
});

t.test('a domain that was never checked is a text that no host equals', (t) => {
  const lines = (script: string): string[] => script.split('\n');
  const plain = lines(scriptOf({ domains: ['a.example'] }));
  for (const text of nasty) {
    const script = scriptOf({ domains: ['a.example', text], exclude: [text] });
    t.match(script, /^[\n -~]+$/, label(text));
    t.equal(lines(script).length, plain.length);
    t.notMatch(script, /<\/?script|&x;/);
    const find = run(script);
    t.equal(find('www.a.example'), through);
    t.equal(find('b.example'), 'DIRECT');
    const data = runInNewContext(`${script}\nthrough.concat(around)`) as string[];
    t.equal(data.length, 3);
    t.equal(data[2], text.toLowerCase().replaceAll(/^\.+|\.+$/g, ''));
  }
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const script = scriptOf({ domains: [text] });
      const [found] = runInNewContext(`${script}\nthrough`) as string[];
      return /^[\n -~]+$/.test(script) && found === text.toLowerCase().replaceAll(/^\.+|\.+$/g, '');
    }),
  );
  t.end();
});

t.test('a text that is no host or port is refused', (t) => {
  for (const text of breaking) {
    t.throws(() => scriptOf({ host: text }), Unfit, label(text));
    t.throws(() => scriptOf({ host: `proxy.example.com${text}` }), Unfit);
  }
  for (const port of [0, -1, 65536, 1.5, NaN]) t.throws(() => scriptOf({ port }), Unfit);
  t.end();
});
