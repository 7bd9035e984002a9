/** The subjects that a stream has, in pages of STREAM.INFO: the server puts 100,000 into one. */
import type { NatsConnection } from '@nats-io/transport-node';
import { StreamReadError } from './direct-reads.ts';

export interface SubjectsAsk {
  readonly stream: string;
  /** The subject to ask, if it is not JetStream's own. */
  readonly api?: string;
  readonly filter: string;
  /** Subjects before the page. */
  readonly offset: number;
  readonly timeoutMs: number;
}

/** The page as `subjectsOfPage` reads it, and how many subjects all pages have. */
export interface SubjectsPage {
  readonly text: string;
  readonly total: number;
}

/** @throws if the server does not answer, or refuses */
export async function readSubjects(
  nc: NatsConnection,
  { stream, api = `$JS.API.STREAM.INFO.${stream}`, filter, offset, timeoutMs }: SubjectsAsk,
): Promise<SubjectsPage> {
  const request = JSON.stringify({ subjects_filter: filter, offset });
  const answer = await nc.request(api, request, { timeout: timeoutMs });
  const text = answer.string();
  if (text.includes('"error":{')) throw new StreamReadError(`${stream}: STREAM.INFO answered ${text.slice(0, 300)}`);
  return { text, total: Number(/"total":(\d+)/.exec(text)?.[1] ?? 0) };
}

const listBegins = '"subjects":{';
/** One member of the list. Its name may contain anything, but quotes in it are escaped. */
const counted = /"((?:[^"\\]|\\.)*)":(\d+)[,}]/gy;

/**
 * The subjects of a page, and how many messages each has. JSON.parse of a full page would block the
 * event loop.
 */
export function* subjectsOfPage(text: string): Generator<readonly [string, number], void, void> {
  const begin = text.indexOf(listBegins);
  if (begin < 0) return;
  counted.lastIndex = begin + listBegins.length;
  for (;;) {
    const at = counted.lastIndex;
    const [, name = '', count] = counted.exec(text) ?? [];
    if (count === undefined) return;
    const next = counted.lastIndex;
    yield [name.includes('\\') ? decodeName(name, at) : name, Number(count)];
    // The caller may have read another page meanwhile.
    counted.lastIndex = next;
  }
}

function decodeName(name: string, at: number): string {
  const decoded: unknown = JSON.parse(`"${name}"`);
  if (typeof decoded !== 'string') throw new Error(`no subject at ${at}`);
  return decoded;
}
