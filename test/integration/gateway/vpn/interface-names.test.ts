/** The real `ip` makes an interface of every name that a network or a peer's file may have. */
import t from 'tap';
import { run } from '../../../../dev/process/run.ts';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { validateNetworkCreate } from '../../../../gateway/validation/network.ts';
import { fileName } from '../../../../gateway/vpn/render/filename.ts';
import { skipWithoutTools } from '../../../support/tools.ts';
import { peerId } from '../../../gateway/vpn/support.ts';

/** Prints the names that no interface gets, asked for as `wg-quick` does. */
const script = `for name; do
  "$0" link add "$name" type veth peer name other9 && "$0" link delete dev "$name" && continue
  echo "$name"
  "$0" link delete dev other9
done 2> /dev/null
exit 0`;

t.test('names that ip takes for words of its own', { skip: await skipWithoutTools('ip') }, async (t) => {
  const { path, env } = await toolHere('ip');
  const help = await run(path, ['link', 'help'], { env, deadlineMs: 10_000 });
  const words = new Set(`${help.stdout} ${help.stderr}`.match(/[a-z][a-z0-9_-]+/g));
  for (const undocumented of ['qlen', 'txqlen', 'mode', 'state', 'brd', 'index']) words.add(undocumented);
  const names = new Set([...words].flatMap((word) => [...word].map((_, at) => word.slice(0, at + 1).slice(0, 15))));
  t.ok(names.size > 300, 'all words of the help, and what they begin with');
  const command = ['--net', '--', 'sh', '-c', script, path, ...names];
  const ran = await run('unshare', command, { env, deadlineMs: 60_000 });
  t.equal(ran.code, 0, ran.stderr);
  const unfit = ran.stdout.split('\n').filter(Boolean);
  for (const name of ['dev', 'up', 'l', 'ty', 'mtu', 'vf']) t.ok(unfit.includes(name), name);
  const asNetwork = unfit.filter(
    (name) => validateNetworkCreate({ name, endpoint: 'vpn.example.com', ipv4_pool: '10.86.0.0/24' }).ok,
  );
  t.same(asNetwork, [], 'no network has such a name');
  t.same(
    unfit.filter((name) => fileName(name, peerId, 'conf') === `${name}.conf`),
    [],
    'nor the file of a peer',
  );
});
