/**
 * The document of a container: all that is declared of it, read and written as one (docs/api.md,
 * "The document").
 */
import { answerOf, writtenOf, type Answer, type Schemas, type Written } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';

/** Attempts of a change while others change the container, too. */
const cliChangeAttempts = 5;

export type Document = Schemas['ContainerSpec'];
/** Absent `desired` and `host_key` stay as they are. */
export type DocumentBody = Schemas['ContainerSpecPut'];
export type Plan = Schemas['ContainerSpecPlan'];

/** Names of the secrets that it uses. */
export const secretsOf = ({ secrets: { env, files } }: Pick<Document, 'secrets'>): string[] => [
  ...Object.values(env),
  ...Object.values(files).map(({ secret }) => secret),
];

type Asking = Pick<Context, 'api'>;

export interface Declared {
  readonly document: Document;
  readonly etag: string;
}

export async function documentOf({ api }: Asking, id: string): Promise<Declared> {
  const { body, response } = await answerOf(api.GET('/api/v2/containers/{id}/spec', { params: { path: { id } } }));
  return { document: body.data, etag: response.headers.get('etag') ?? '*' };
}

export function createFrom(
  { api }: Asking,
  body: DocumentBody,
  query: { readonly pull?: 'always' } = {},
): Promise<Written<Schemas['Container']>> {
  // With `dry_run`, it would be a document.
  const asked = api.POST('/api/v2/containers', { params: { query }, body }) as Promise<
    Answer<{ readonly data: Schemas['Container'] }>
  >;
  return writtenOf(asked);
}

/**
 * Writes a document.
 * @returns the generation to wait for
 * @throws ApiError, with the status 412 if the container's ETag has changed
 */
export async function replaceBy(
  { api }: Asking,
  id: string,
  etag: string,
  body: DocumentBody,
  query: { readonly pull?: 'always' } = {},
): Promise<number> {
  const params = { path: { id }, header: { 'If-Match': etag }, query };
  return (await writtenOf(api.PUT('/api/v2/containers/{id}/spec', { params, body }))).generation;
}

/**
 * Changes the document as it is at the moment of the change.
 * @param query `pull=always`: the host looks again at what its tag names
 * @returns as `replaceBy`
 * @throws Refused if others change it again and again
 */
export async function changeDocument(
  context: Asking,
  id: string,
  change: (document: Document) => DocumentBody,
  query: { readonly pull?: 'always' } = {},
): Promise<number> {
  for (let attempt = 0; attempt < cliChangeAttempts; attempt++) {
    const { document, etag } = await documentOf(context, id);
    try {
      return await replaceBy(context, id, etag, change(document), query);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412) throw error;
    }
  }
  throw new Refused('others change this container at the same time: run the command again');
}

/**
 * Dry run of a write.
 * @param id of an existing container; absent for a new one
 * @returns `undefined` if the answer has no plan
 * @throws ApiError if the server would refuse the write
 */
export async function planned({ api }: Asking, body: DocumentBody, id?: string): Promise<Plan | undefined> {
  const query = { dry_run: true } as const;
  const { body: answer } = await (id === undefined
    ? answerOf(api.POST('/api/v2/containers', { params: { query }, body }))
    : answerOf(api.PUT('/api/v2/containers/{id}/spec', { params: { query, path: { id } }, body })));
  return 'plan' in answer ? answer.plan : undefined;
}
