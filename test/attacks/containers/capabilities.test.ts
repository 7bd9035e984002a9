/**
 * A tenant's process runs as root in its container and tries what root may do: device files, raw
 * sockets, new roots. It must have only the few capabilities that ordinary images need, and no way
 * to gain others.
 */
import t from 'tap';
import { defaultCapabilities } from '../../../host-agent/spec/confinement.ts';
import { startRig, steady } from '../../host-agent/support/rig.ts';
import { until } from '../../support/until.ts';

/** linux/capability.h */
const bits = { CHOWN: 0, DAC_OVERRIDE: 1, FOWNER: 3, KILL: 5, SETGID: 6, SETUID: 7, NET_BIND_SERVICE: 10 } as const;
const mask = (names: readonly (keyof typeof bits)[]): string =>
  names
    .reduce((sum, name) => sum | (1n << BigInt(bits[name])), 0n)
    .toString(16)
    .padStart(16, '0');

const look = `
busybox grep -E '^(Cap(Eff|Bnd|Prm)|NoNewPrivs|Seccomp):' /proc/self/status
echo "core $(ulimit -c)"
echo "pids $(cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null)"
echo "shm $(busybox df -k /dev/shm | busybox tail -n 1)"
busybox mknod /tmp/disk b 8 0 2>&1 && echo 'made a device'
busybox chroot / /bin/true 2>&1 && echo 'changed root'
busybox mount -t tmpfs none /tmp 2>&1 && echo 'mounted'
busybox touch /tmp/file && busybox chown nobody /tmp/file && busybox chmod 600 /tmp/file && echo 'took over a file'
echo done
${steady}`;

t.test('the capabilities of a container', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const image = await script('capabilities', look);
  const said = async (id: string): Promise<string> => {
    const ofIt = (await engine.containers()).find(({ Config }) => Config.Labels['longshore.container'] === id);
    const { text } = await engine.call('GET', `/containers/${ofIt?.Id}/logs?stdout=1&stderr=1`);
    return text;
  };
  const outputOf = (id: string) =>
    until('its output', async () => {
      const text = await said(id);
      return text.includes('done') ? text : undefined;
    });
  const process = agent();

  await t.test('by default a container has the few that ordinary images need, and can gain none', async (t) => {
    const { id } = controlPlane.desire(image);
    const text = await outputOf(id);
    const expected = mask(defaultCapabilities as (keyof typeof bits)[]);
    for (const set of ['CapEff', 'CapPrm', 'CapBnd']) t.match(text, new RegExp(`${set}:\\s+${expected}\\b`));
    t.match(text, /NoNewPrivs:\s+1\b/);
    t.match(text, /Seccomp:\s+2\b/, 'the filter of the engine');
    t.match(text, /core 0\b/);
    t.match(text, /pids 1024\b/);
    t.match(text, /shm \S+\s+65536\s/);
    t.notMatch(text, /made a device|changed root|mounted/);
    t.match(text, /took over a file/);
  });
  await process.stop();

  await t.test('a container has none if the operator configures none', async (t) => {
    const second = agent({ CONTAINER_CAPABILITIES: 'none' });
    const { id } = controlPlane.desire(image);
    const text = await outputOf(id);
    for (const set of ['CapEff', 'CapPrm', 'CapBnd']) t.match(text, new RegExp(`${set}:\\s+0{16}\\b`));
    t.notMatch(text, /took over a file/);
    await second.stop();
  });

  await t.test('an agent that is configured to give more does not start', async (t) => {
    const third = agent({ CONTAINER_CAPABILITIES: 'CHOWN,SYS_ADMIN' });
    t.not(await third.exited(), 0);
    await third.logged('configuration_invalid', (line) => JSON.stringify(line).includes('CONTAINER_CAPABILITIES'));
  });
});
