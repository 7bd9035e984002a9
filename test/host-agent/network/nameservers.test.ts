import t from 'tap';
import { nameserversIn, readNameservers } from '../../../host-agent/network/nameservers.ts';

t.test('containers get the name servers of the host, or those behind systemd-resolved', async (t) => {
  t.same(
    nameserversIn(
      '# nameserver 1.1.1.1\nnameserver 10.0.0.2\n nameserver\tfd00::2\nnameserver fe80::1%eth0\nsearch x\n',
    ),
    ['10.0.0.2', 'fd00::2'],
  );
  const read = (files: Readonly<Record<string, string>>) => (path: string) =>
    files[path] === undefined ? Promise.reject(new Error('ENOENT')) : Promise.resolve(files[path]);
  const behind = { '/run/systemd/resolve/resolv.conf': 'nameserver 10.0.0.9\n' };
  t.same(await readNameservers(read({ '/etc/resolv.conf': 'nameserver 127.0.0.53\n', ...behind })), ['10.0.0.9']);
  t.same(await readNameservers(read({ '/etc/resolv.conf': 'nameserver 10.0.0.1\n', ...behind })), ['10.0.0.1']);
  t.same(await readNameservers(read({ '/etc/resolv.conf': 'nameserver 127.0.0.1\nnameserver 10.0.0.1\n' })), [
    '10.0.0.1',
  ]);
  t.same(await readNameservers(read({})), []);
});
