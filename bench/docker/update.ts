/**
 * The gap of an update: from the last answer of the old version to the first of the new one, with
 * both images present. The engine alone, Longshore on top of it, and Docker Swarm in it.
 */
import { randomBytes } from 'node:crypto';
import { pushTestImage } from '../../dev/servers/registry.ts';
import type { Stack } from '../../dev/stack/stack.ts';
import { labels, type Owner } from '../../host-agent/docker/ownership.ts';
import type { Table } from '../section.ts';
import { figure, median, quantile, ratio } from '../statistics.ts';
import { engineBody, referenceOf } from './engine-alone.ts';
import { eventually, load, type BenchImage, type DockerEngine } from './peer.ts';
import type { Swarm } from './swarm.ts';
import { watchAnswers, type Watch } from './watch.ts';

const port = 8080;
const [before, after] = ['a', 'b'];
const serving = 'trap "exit 0" TERM; httpd -p 8080 -h /www; while :; do sleep 3600 & wait $!; done';
const waitSeconds = 60;

interface Images {
  readonly before: BenchImage;
  readonly after: BenchImage;
  readonly crashing: BenchImage;
}

interface Plan {
  readonly stack: Stack;
  readonly engine: DockerEngine;
  readonly owner: Owner;
  readonly inSwarm: Swarm;
  readonly rounds: number;
  readonly signal: AbortSignal;
}

interface Networked {
  readonly HostConfig: { readonly NetworkMode: string };
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>>;
    readonly Ports: Readonly<Record<string, readonly { readonly HostPort: string }[] | null>>;
  };
}

async function pushImages({ stack, engine }: Plan): Promise<Images> {
  const { registry } = stack.image;
  const repository = 'bench/serving';
  const push = async (tag: string, script: string): Promise<BenchImage> => {
    const files = [
      { kind: 'folder', path: 'www' },
      { kind: 'file', path: 'www/index.html', content: tag },
    ] as const;
    const digest = await pushTestImage(registry, { repository, tag, cmd: ['sh', '-c', script], files });
    const image = { registry, repository, tag, digest };
    await engine.pull(referenceOf(image));
    return image;
  };
  return {
    before: await push(before, serving),
    after: await push(after, serving),
    crashing: await push('crashing', 'exit 3'),
  };
}

/** The URL of a container: its published port, or its own address. */
async function urlOf(engine: DockerEngine, dockerId: string, isPublished: boolean): Promise<string> {
  const { HostConfig, NetworkSettings } = await engine.get<Networked>(`/containers/${dockerId}/json`);
  const [, sandbox] = HostConfig.NetworkMode.split('container:');
  if (sandbox !== undefined) return urlOf(engine, sandbox, isPublished);
  const [published] = NetworkSettings.Ports[`${port}/tcp`] ?? [];
  if (isPublished) return `http://127.0.0.1:${published?.HostPort}/`;
  const [network] = Object.values(NetworkSettings.Networks);
  return `http://${network?.IPAddress}:${port}/`;
}

async function measured(signal: AbortSignal, run: (watch: Watch) => Promise<number>): Promise<number> {
  const watch = watchAnswers(signal);
  try {
    return await run(watch);
  } finally {
    watch.stop();
  }
}

/** Stops the old container and starts the new one, which is made before. */
async function engineAlone({ engine, owner, signal }: Plan, images: Images, isPublished: boolean): Promise<number> {
  const create = async (image: BenchImage): Promise<string> => {
    const name = `bench-update-${randomBytes(6).toString('hex')}`;
    const body = engineBody(owner, image, isPublished ? [port] : []);
    return (JSON.parse(await engine.ask('POST', `/containers/create?name=${name}`, body)) as { Id: string }).Id;
  };
  const [old, next] = [await create(images.before), await create(images.after)];
  return measured(signal, async (watch) => {
    await engine.ask('POST', `/containers/${old}/start`);
    watch.add(await urlOf(engine, old, isPublished));
    await watch.says(before);
    await engine.ask('POST', `/containers/${old}/stop?t=${load.stopGraceMs / 1000}`);
    await engine.ask('POST', `/containers/${next}/start`);
    watch.add(await urlOf(engine, next, isPublished));
    await watch.says(after);
    return watch.gapMs(before, after);
  }).finally(async () => {
    for (const id of [old, next]) await engine.ask('DELETE', `/containers/${id}?v=1&force=1`);
  });
}

/** @param to the tag of the new version; one that crashes is rolled back */
async function longshore({ stack, engine, signal }: Plan, images: Images, isPublished: boolean, to: keyof Images) {
  const { api, tokens } = stack;
  const { token } = tokens.tenants.other;
  const { registry, repository, tag } = images.before;
  const { id } = await api.create(token, {
    name: `bench-${randomBytes(6).toString('hex')}`,
    ...{ registry, repository, tag, ports: isPublished ? [port] : [] },
    cpu_limit: String(load.cpuMillis / 1000),
    mem_limit: `${load.memBytes / 1024 ** 2}m`,
  });
  const phaseIs = (phase: string): Promise<true> =>
    eventually(`${id} ${phase}`, async () =>
      (await api.status(token, id)).update?.phase === phase ? true : undefined,
    );
  return measured(signal, async (watch) => {
    await eventually(`${id} running`, async () => {
      return (await api.status(token, id)).status === 'running' ? true : undefined;
    });
    const filters = encodeURIComponent(JSON.stringify({ label: [`${labels.container}=${id}`] }));
    const [found] = await engine.get<{ Id: string }[]>(`/containers/json?filters=${filters}`);
    watch.add(await urlOf(engine, found?.Id ?? '', isPublished));
    await watch.says(before);
    await api.patch(token, id, { tag: images[to].tag });
    if (to === 'crashing') {
      await phaseIs('rolled_back');
      await watch.says(before);
      return watch.longestGapMs(before);
    }
    await watch.says(after);
    return watch.gapMs(before, after);
  }).finally(async () => {
    await api.remove(token, id, waitSeconds);
  });
}

const swarmUpdate = ({ inSwarm, engine, signal }: Plan, images: Images): Promise<number> =>
  measured(signal, async (watch) => {
    const service = await inSwarm.serve(images.before);
    try {
      watch.add(await urlOf(engine, await service.dockerId(), false));
      await watch.says(before);
      watch.add(await urlOf(engine, await service.update(images.after), false));
      await watch.says(after);
      return watch.gapMs(before, after);
    } finally {
      await service.remove();
    }
  });

export async function updateTable(plan: Plan): Promise<Table> {
  const images = await pushImages(plan);
  const rows = [
    ['engine alone', () => engineAlone(plan, images, false)],
    ['engine alone, with a published port', () => engineAlone(plan, images, true)],
    ['Longshore', () => longshore(plan, images, false, 'after')],
    ['Longshore, with a published port', () => longshore(plan, images, true, 'after')],
    ['Longshore, a version that crashes: until the old one is back', () => longshore(plan, images, true, 'crashing')],
    ['Docker Swarm', () => swarmUpdate(plan, images)],
  ] as const;
  const gaps = rows.map((): number[] => []);
  for (let round = 0; round <= plan.rounds; round++) {
    for (const [index, [, measure]] of rows.entries()) {
      plan.signal.throwIfAborted();
      const gapMs = await measure();
      // The first round is a warm-up.
      if (round > 0) gaps[index]?.push(gapMs);
    }
  }
  const base = median(gaps[0] ?? []);
  return {
    title: 'Update: time without a version that answers',
    columns: ['', 'p50 ms', 'p99 ms', 'vs engine alone'],
    rows: rows.map(([name], index) => {
      const times = gaps[index] ?? [];
      return [name, figure(median(times)), figure(quantile([...times], 0.99)), ratio(median(times), base)];
    }),
    remarks: [
      'From the last answer of the old process to the first of the new one, asked every 5 ms over HTTP; both images are present. For the engine alone, the new container is made before; then `stop` of the old one and `start` of the new one. For Longshore, a `PATCH` of the tag: address and port stay. For Swarm, an update of the service in its default order, stop first.',
      'The version that crashes ends three times before the old one starts again.',
    ],
  };
}
