import t from 'tap';
import { Artifacts, type BuildTimer } from '../../../../gateway/vpn/service/artifacts.ts';
import type { NetworkRecord } from '../../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../../schemas/api/peer.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import { forageWith, networkNow, peerNow, vault } from '../forage.ts';
import { baseUrl } from '../support.ts';

const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };
const subjectNow = (peer: Partial<PeerRecord> = {}, network: Partial<NetworkRecord> = {}) => ({
  peer: peerNow(peer),
  network: { ...networkNow(), ...network },
  baseUrl,
});

function stage(made: Parameters<typeof forageWith>[1] = {}) {
  const { keyring, jobs } = forageWith({}, made);
  const timed: string[] = [];
  const timer: BuildTimer = (artifact, build) => (timed.push(artifact), build());
  return { artifacts: new Artifacts(timer), keyring, jobs, timed };
}

t.test('a bundle is made once for requests that come together and for those that follow', async (t) => {
  const { artifacts, keyring, jobs, timed } = stage();
  const bundle = (subject = subjectNow(), encryption: 'compat' | 'modern' = 'compat') =>
    artifacts.bundle(asker, subject, encryption, keyring);
  t.same(await Promise.all([bundle(), bundle()]), [Buffer.from('p12'), Buffer.from('p12')]);
  await bundle();
  t.match(jobs, [
    {
      kind: 'p12',
      input: { privateKeyPem: 'certificate secret', password: 'password secret', friendlyName: 'phone' },
      deadlineMs: 1000,
    },
  ]);
  t.same(timed, ['p12'], 'what is kept is not measured');
  const others = [
    () => bundle(subjectNow(), 'modern'),
    () => bundle(subjectNow({ generation: 2 })),
    () => bundle(subjectNow({ updatedAtMs: 7 })),
    () => bundle(subjectNow({}, { updatedAtMs: 7 })),
  ];
  for (const other of others) await other();
  for (const other of others) await other();
  t.equal(jobs.length, 1 + others.length, 'another encryption or a change of what it shows is another file');
});

t.test('a file kept for one tenant does not open for another', async (t) => {
  const { artifacts, keyring } = stage();
  await artifacts.bundle(asker, subjectNow(), 'compat', keyring);
  const ofOther = subjectNow({ tenant: 'other' as TenantId });
  await t.rejects(async () => void (await artifacts.bundle(asker, ofOther, 'compat', keyring)), { name: 'SealError' });
});

t.test('a failure is not kept, and the next request tries again', async (t) => {
  const { keyring, jobs, artifacts } = stage();
  let failing = true;
  const pool: typeof keyring.pool = {
    run: (...job) => (failing ? Promise.reject(new Error('the thread died')) : keyring.pool.run(...job)),
  };
  const bundle = () => artifacts.bundle(asker, subjectNow(), 'compat', { ...keyring, pool });
  const both = await Promise.allSettled([bundle(), bundle()]);
  t.same(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  failing = false;
  t.same(await bundle(), Buffer.from('p12'));
  t.equal(jobs.length, 1);
});

t.test('a QR code shows the configuration; a text that is too long is refused, and not kept', async (t) => {
  const { artifacts, keyring, jobs } = stage();
  t.same(await artifacts.qr(asker, subjectNow(), keyring), Buffer.from('<svg/>'));
  t.match(jobs, [{ kind: 'qr', input: { text: String(artifacts.conf(subjectNow(), keyring)) } }]);
  const long = stage({ qr: 'too_large' });
  for (const asked of [1, 2]) {
    await t.rejects(long.artifacts.qr(asker, subjectNow(), long.keyring), {
      name: 'Refusal',
      result: { code: 'invalid', body: /download the file instead/ },
    });
    t.equal(long.jobs.length, asked);
  }
});

t.test('a configuration is kept until the peer or its network changes', (t) => {
  const { artifacts, keyring } = stage();
  const opened: string[] = [];
  const open = vault.open.bind(vault);
  const counting = {
    ...keyring,
    vault: Object.assign(Object.create(vault), {
      open: (...sealed: Parameters<typeof open>) => (opened.push(sealed[1]), open(...sealed)),
    }) as typeof vault,
  };
  const conf = (...of: Parameters<typeof subjectNow>) => String(artifacts.conf(subjectNow(...of), counting));
  const first = conf();
  t.match(first, /PrivateKey = /);
  t.equal(conf(), first);
  t.equal(opened.length, 2, 'each seal is opened once');
  t.match(conf({ generation: 2, dns: ['10.1.2.3'] }), 'DNS = 10.1.2.3\n');
  t.match(conf({}, { updatedAtMs: 7, settings: { ...networkNow().settings, mtu: 1300 } }), 'MTU = 1300\n');
  t.equal(opened.length, 6);
  t.throws(() => conf({ tenant: 'other' as TenantId }), { name: 'SealError' }, 'nothing is kept across tenants');
  t.end();
});
