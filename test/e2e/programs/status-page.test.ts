/** A status page: one stream, from which it knows all containers and each change. */
import t from 'tap';
import { doneOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { followFrames, valueOf, type Open } from '../../../cli/client/follow.ts';
import { create, groundOf, small } from './program.ts';

t.setTimeout(300_000);

type Item = Schemas['ContainerItem'];

/** Keeps the page up to date, a line for each name, and calls `changed` with all of it. */
async function show(api: Api, signal: AbortSignal, changed: (page: Readonly<Record<string, string>>) => void) {
  const lines = new Map<string, readonly [name: string, line: string]>();
  let isWhole = false;
  const open: Open = (header, ended) =>
    api.GET('/api/v2/containers/watch', { params: { header }, parseAs: 'stream', signal: ended });
  for await (const frame of followFrames(open, signal)) {
    if (frame.event === 'reset') {
      lines.clear();
      isWhole = false;
    } else if (frame.event === 'synced') isWhole = true;
    else if (frame.event === 'removed') lines.delete((valueOf(frame) as { readonly id: string }).id);
    else if (frame.event === 'item') {
      const { container, status } = valueOf(frame) as Item;
      const health = status?.reason === 'unhealthy' ? ' (unhealthy)' : '';
      lines.set(container.id, [container.name, `${container.status}${health}`]);
    }
    if (isWhole) changed(Object.fromEntries(lines.values()));
  }
}

t.test('a page shows what there was before it, and what becomes of it', async (t) => {
  const { api, image, imageOf } = await groundOf(t, 'status');
  const { data: web } = await create(api, { name: 'web', image, ...small });
  const leave = new AbortController();
  t.teardown(() => leave.abort());
  let shown: Readonly<Record<string, string>> = {};
  const wakes: (() => void)[] = [];
  const page = show(api, leave.signal, (lines) => {
    shown = lines;
    for (const wake of wakes.splice(0)) wake();
  });
  /** Sleeps until a change of the page: a status page never asks again. */
  const until = async (what: string, holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise<void>((resolve) => wakes.push(resolve));
    t.ok(holds(), what);
  };
  await until('it runs', () => shown['web'] === 'running');
  const image2 = await imageOf('exit 1');
  await create(api, { name: 'job', image: image2, policy: { restart: 'never' }, ...small });
  await until('a job that fails', () => shown['job'] === 'failed');
  await doneOf(api.DELETE('/api/v2/compute/{id}', { params: { path: { id: web.id } } }));
  await until('what is gone', () => !('web' in shown));
  t.same(Object.keys(shown), ['job']);
  leave.abort();
  await page.catch(() => {});
});
