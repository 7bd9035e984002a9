/** Server-Sent Events, as a client reads them. */
import type { Scope } from '../machine.ts';
import { holdToDocument } from './api-answers.ts';

export interface Frame {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/** Fails the test if the answer is not as the OpenAPI document says. */
export const hold = (url: string, { status, headers }: Response, text: string): void => {
  const { pathname, search } = new URL(url);
  holdToDocument({ method: 'GET', path: pathname + search, status, headers, text });
};

/** A client of Server-Sent Events that keeps the frames that it received. */
export async function listen(scope: Scope, url: string, headers: Record<string, string>) {
  const abort = new AbortController();
  scope.teardown(() => abort.abort());
  const response = await fetch(url, { headers, signal: abort.signal });
  if (response.status === 200) hold(url, response, '');
  const frames: Frame[] = [];
  const raw = { text: '', ended: false };
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of response.body ?? []) {
      const piece = decoder.decode(chunk as Uint8Array, { stream: true });
      raw.text += piece;
      rest += piece;
      const blocks = rest.split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const field = (name: string): string =>
          block
            .split('\n')
            .find((line) => line.startsWith(`${name}: `))
            ?.slice(name.length + 2) ?? '';
        if (field('data') !== '') {
          frames.push({ id: field('id'), event: field('event'), data: JSON.parse(field('data')) as unknown });
        }
      }
    }
  };
  read().then(
    () => (raw.ended = true),
    () => (raw.ended = true),
  );
  return { response, frames, raw, leave: () => abort.abort() };
}
