/**
 * The pool of threads: what it makes, in which order, and what becomes of jobs that can't be done.
 */
import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { JobInput } from '../../../../gateway/vpn/pki/jobs.ts';
import {
  PkiPool,
  WorkerDied,
  JobFailed,
  vpnJobsQueued,
  type PoolBusy,
  type PkiPoolOptions,
} from '../../../../gateway/vpn/pki/pool.ts';
import { limits } from '../../../../schemas/limits.ts';
import { until } from '../../../support/until.ts';
import { recordingLog } from '../../support.ts';
import { crlUrl, days, newAuthority, newClient, newRsaPem, type TestAuthority } from './support.ts';
import { faults } from './faults.ts';

const faulty = new URL('./faulty-thread.js', import.meta.url);

function newPool(t: Test, options: Partial<PkiPoolOptions> = {}) {
  const log = recordingLog();
  const pool = new PkiPool({ log, spareRsaKeys: 0, ...options });
  t.teardown(() => pool.stop());
  return {
    pool,
    ended: () => log.events.filter(({ event }) => event === 'pki_thread_ended').map(({ fields }) => fields),
  };
}

const authority = newAuthority();

const clientOf = (given: TestAuthority = authority): JobInput<'peer'> => ({
  ...given,
  localId: 'peer.demo.internal',
  crlUrl,
  notBeforeMs: Date.now() - 3600_000,
  notAfterMs: Date.now() + 50 * days + 123,
});

const qrs = (pool: PkiPool, count: number) =>
  Array.from({ length: count }, (_, index) => pool.run('qr', { text: `text ${index}` }));

/** Handles the results before they are awaited, so that no rejection counts as unhandled. */
const settledLater = <T>(promises: readonly Promise<T>[]) => Promise.allSettled(promises);

t.test('a network, its peer, and what is renewed', async (t) => {
  const { pool } = newPool(t);
  const nowMs = Date.now();
  const network = await pool.run('network', {
    network: 'demo',
    endpoint: '192.0.2.7',
    crlUrl,
    nameConstraints: false,
    nowMs,
  });
  const given = { caPem: network.ca.certificate.pem, caKeyPem: network.ca.privateKeyPem };
  const peer = await pool.run('peer', clientOf(given));
  const ca = await pool.run('ca', { network: 'demo', privateKeyPem: network.ca.privateKeyPem, nowMs: nowMs + days });
  const server = await pool.run('server', {
    ...given,
    endpoint: 'vpn.example.com',
    crlUrl,
    privateKeyPem: network.server.privateKeyPem,
    nowMs,
  });
  const client = await pool.run('client', { ...clientOf(given), privateKeyPem: peer.privateKeyPem });

  const bits = (keyPem: string) => createPublicKey(keyPem).asymmetricKeyDetails?.modulusLength;
  t.same(
    [network.ca, network.server, peer].map(({ privateKeyPem }) => bits(privateKeyPem)),
    [3072, 3072, 2048],
  );
  const authorityKey = new X509Certificate(network.ca.certificate.pem).publicKey;
  for (const [name, { certificate }, keyPem] of [
    ['authority', network.ca, network.ca.privateKeyPem],
    ['server', network.server, network.server.privateKeyPem],
    ['client', peer, peer.privateKeyPem],
    ['authority, renewed', ca, network.ca.privateKeyPem],
    ['server, renewed', server, network.server.privateKeyPem],
    ['client, renewed', client, peer.privateKeyPem],
  ] as const) {
    const read = new X509Certificate(certificate.pem);
    t.ok(read.verify(authorityKey), name);
    t.ok(read.checkPrivateKey(createPrivateKey(keyPem)), 'for its key');
    t.equal(read.serialNumber.toLowerCase(), certificate.serial);
    t.equal(Date.parse(read.validFrom), certificate.notBeforeMs, 'what is kept says what it says');
    t.equal(Date.parse(read.validTo), certificate.notAfterMs);
    t.ok(certificate.notBeforeMs <= nowMs + days - limits.certificateBackdateMs, 'for clocks that are late');
  }
  t.ok(new X509Certificate(network.server.certificate.pem).checkIP('192.0.2.7'));
  t.ok(new X509Certificate(server.certificate.pem).checkHost('vpn.example.com'));
  t.equal(ca.certificate.notAfterMs - network.ca.certificate.notAfterMs, days);
  t.equal(network.server.certificate.notAfterMs, Math.floor((nowMs + limits.certificateLifetimeMs) / 1000) * 1000);
  t.not(peer.wireguard.publicKey, network.wireguard.publicKey);
  t.match(peer.presharedKey, /^[A-Za-z0-9+/]{43}=$/);

  const crl = await pool.run('crl', {
    ...given,
    number: nowMs,
    thisUpdateMs: nowMs,
    nextUpdateMs: nowMs + days,
    entries: [],
  });
  t.equal(crl[0], 0x30);
  const p12 = await pool.run('p12', {
    certificatePem: peer.certificate.pem,
    caPem: given.caPem,
    privateKeyPem: peer.privateKeyPem,
    password: 'correct horse',
    friendlyName: 'phone',
    encryption: 'modern',
  });
  t.ok(p12.length > 2000);
  t.match(await pool.run('qr', { text: 'hello' }), { svg: /^<svg/ });
  t.equal(await pool.run('qr', { text: 'x'.repeat(limits.qrBytes + 1) }), 'too_large');
});

t.test('no certificate outlives its authority', async (t) => {
  const { pool } = newPool(t);
  const end = Date.parse(new X509Certificate(authority.caPem).validTo);
  const longer = { ...clientOf(), notAfterMs: end + 500 * days };
  const privateKeyPem = newRsaPem();
  const client = await pool.run('client', { ...longer, privateKeyPem });
  const server = await pool.run('server', {
    ...authority,
    endpoint: 'a.example',
    crlUrl,
    privateKeyPem,
    nowMs: Date.now(),
  });
  t.same(
    [client, server].map(({ certificate }) => certificate.notAfterMs),
    [end, end],
  );
  const peer = await pool.run('peer', { ...longer, notAfterMs: Date.now() + 5 * days });
  t.ok(peer.certificate.notAfterMs <= Date.now() + 5 * days, 'nor the end that it was given');
});

t.test('a job that fails says so, and tells of no secret', async (t) => {
  const { pool } = newPool(t);
  const privateKeyPem = newRsaPem().replace('MII', 'XXX');
  const failing = pool.run('client', { ...clientOf(), privateKeyPem });
  await t.rejects(failing, { name: 'JobFailed', message: /^client: / });
  const error: unknown = await failing.catch((caught: unknown) => caught);
  t.ok(error instanceof JobFailed);
  t.notMatch(String(error), privateKeyPem.slice(40, 60));
  await t.rejects(pool.run('peer', { ...clientOf(), notAfterMs: 0 }), JobFailed, 'an end before the beginning');
  t.match(await pool.run('qr', { text: 'goes on' }), { svg: /svg/ });
});

t.test('a full queue refuses', async (t) => {
  const { pool } = newPool(t, { workers: 1, program: faulty });
  const held = settledLater([pool.run('qr', { text: faults.hang })]);
  const waiting = settledLater(qrs(pool, vpnJobsQueued));
  t.equal(pool.queued(), vpnJobsQueued);
  await t.rejects(pool.run('qr', { text: 'one more' }), { name: 'PoolBusy', why: 'full' });
  await pool.stop();
  t.equal(pool.queued(), 0);
  for (const settled of [...(await held), ...(await waiting)]) {
    if (settled.status !== 'rejected' || (settled.reason as PoolBusy).why !== 'stopping') t.fail('not refused');
  }
  await t.rejects(pool.run('qr', { text: 'late' }), { name: 'PoolBusy', why: 'stopping' });
});

t.test('a job whose deadline comes while it waits is not begun', async (t) => {
  let nowMs = 1000;
  const { pool } = newPool(t, {
    workers: 1,
    program: faulty,
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
  });
  await t.rejects(pool.run('qr', { text: 'x' }, 1000), { name: 'PoolBusy', why: 'late' }, 'it is over already');
  nowMs = 999;
  const held = settledLater([pool.run('qr', { text: faults.hang })]);
  // Were it begun, it would end the thread.
  const late = pool.run('qr', { text: faults.exit }, 1000);
  const later = settledLater([pool.run('qr', { text: 'x' })]);
  t.equal(pool.queued(), 2);
  await t.rejects(late, { name: 'PoolBusy', why: 'late' });
  t.equal(pool.queued(), 1, 'the other still waits');
  await pool.stop();
  await Promise.all([held, later]);
});

t.test('a job that is under way at its deadline is given up, and its thread with it in the end', async (t) => {
  const { pool, ended } = newPool(t, { workers: 1, program: faulty, jobMs: 1000 });
  await t.rejects(pool.run('qr', { text: faults.hang }), { name: 'PoolBusy', why: 'late' });
  await until('the thread is given up', () => ended().length > 0);
  const isServed = (): Promise<boolean> =>
    pool.run('qr', { text: 'x' }).then(
      () => true,
      () => false,
    );
  await until('another takes its place', isServed);
});

t.test('a thread that dies takes its job along, and no other', async (t) => {
  const { pool, ended } = newPool(t, { workers: 1, program: faulty });
  for (const text of [faults.exit, faults.throws]) {
    const dying = pool.run('qr', { text });
    const others = qrs(pool, 3);
    await t.rejects(dying, WorkerDied);
    for (const made of await Promise.all(others)) t.match(made, { svg: /svg/ });
  }
  t.same(
    ended().map(({ task, code }) => [task, code]),
    [
      ['qr', 7],
      ['qr', 1],
    ],
  );
  t.match(ended().at(-1)?.['error'], { message: 'thrown in the thread' });
});

t.test('a program that can’t start fails its jobs, and is not started over and over', async (t) => {
  const { pool, ended } = newPool(t, { program: new URL('./none.js', import.meta.url), spareRsaKeys: 4 });
  await t.rejects(pool.run('peer', clientOf()), WorkerDied);
  await t.rejects(pool.run('peer', clientOf()), WorkerDied);
  t.equal(ended().length, 2);
});

t.test('short jobs go before those that make keys', async (t) => {
  const { pool } = newPool(t, { workers: 1 });
  const order: string[] = [];
  const note = (name: string, job: Promise<unknown>) => job.then(() => order.push(name));
  const slow = Array.from({ length: 3 }, (_, index) => note(`peer ${index}`, pool.run('peer', clientOf())));
  const privateKeyPem = newRsaPem();
  const quick = [
    note('qr', pool.run('qr', { text: 'x' })),
    note('client', pool.run('client', { ...clientOf(), privateKeyPem })),
    note(
      'p12',
      pool.run('p12', {
        certificatePem: newClient(authority, privateKeyPem),
        caPem: authority.caPem,
        privateKeyPem,
        password: 'x',
        friendlyName: 'x',
        encryption: 'compat',
      }),
    ),
  ];
  await Promise.all([...slow, ...quick]);
  t.same(order, ['peer 0', 'qr', 'client', 'p12', 'peer 1', 'peer 2']);
});

t.test('keys are made ahead, from the first peer on, and used once each', async (t) => {
  const { pool } = newPool(t, { workers: 1, spareRsaKeys: 3 });
  await Promise.all(qrs(pool, 3));
  t.equal(pool.spareKeys(), 0, 'nobody has asked for a key');
  const first = await pool.run('peer', clientOf());
  await until('three spares', () => pool.spareKeys() === 3);
  const made = Promise.all([1, 2, 3].map(() => pool.run('peer', clientOf())));
  t.equal(pool.spareKeys(), 2, 'one is taken at once, the others when their jobs begin');
  const keys = [first, ...(await made)].map(({ privateKeyPem }) => privateKeyPem);
  t.equal(new Set(keys).size, 4);
  await until('three spares', () => pool.spareKeys() === 3);
  await Promise.all(qrs(pool, 20));
  t.equal(pool.spareKeys(), 3, 'no more than these');
  await pool.stop();
  t.equal(pool.spareKeys(), 0);
});

/** proc(5): the nice value is field 19; the second field may hold spaces. */
const niceOf = (task: string): number =>
  Number(readFileSync(`/proc/self/task/${task}/stat`, 'utf8').split(') ')[1]?.split(' ')[16]);

t.test('its threads give way to the one that serves', { skip: process.platform !== 'linux' && 'Linux' }, async (t) => {
  const { pool } = newPool(t, { workers: 2 });
  const before = niceOf(String(process.pid));
  const tasks = new Set(readdirSync('/proc/self/task'));
  await Promise.all(qrs(pool, 8));
  const nices = readdirSync('/proc/self/task')
    .filter((task) => !tasks.has(task))
    .map(niceOf);
  t.equal(nices.filter((nice) => nice === Math.min(19, before + 5)).length, 2, `${nices.join(' ')}`);
  t.equal(niceOf(String(process.pid)), before, 'the main thread is as it was');
});

t.test('an idle pool lets its process end, and one at work does not', (t) => {
  const program = (after: string): string => `
    import { PkiPool } from ${JSON.stringify(new URL('../../../../gateway/vpn/pki/pool.js', import.meta.url).href)};
    const log = { error: console.error };
    const pool = new PkiPool({ log, spareRsaKeys: 2 });
    ${after}`;
  const ends = (after: string) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', program(after)], { encoding: 'utf8', timeout: 60_000 });
  t.match(ends(''), { status: 0, stdout: '', stderr: '' });
  const work = `pool.run('qr', { text: 'x' }).then(({ svg }) => console.log(svg.length > 100));`;
  t.match(ends(work), { status: 0, stdout: 'true\n', stderr: '' });
  const peer = `pool.run('peer', ${JSON.stringify(clientOf())}).then(() => console.log('made'));`;
  t.match(ends(peer), { status: 0, stdout: 'made\n', stderr: '' }, 'spares are under way when it ends');
  t.end();
});
