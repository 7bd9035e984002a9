/**
 * The types of the client (`cli/client/openapi.d.ts`), from the document that gateways serve. They
 * change only with the document, so the version of the release is not in them. The client looks at
 * each value that it knows, so its types are closed, and it goes on with others as they come.
 */
import { join } from 'node:path';
import openapiTypes, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { openApiDocument } from '../../gateway/openapi/document.ts';
import { routes } from '../../schemas/routes.ts';
import { repositoryRoot } from '../paths.ts';

/** From the root of the repository. */
export const clientTypesPath = 'cli/client/openapi.d.ts';

const header = `/**
 * Types of every route, body and answer of the API. Generated from the OpenAPI document: run
 * \`npm run docs\` in place of editing it.
 */
`;

export async function clientTypes(): Promise<string> {
  const document = openApiDocument(routes, '0', true) as unknown as OpenAPI3;
  const text = astToString(await openapiTypes(document, { defaultNonNullable: false, silent: true }));
  const path = join(repositoryRoot, clientTypesPath);
  return format(header + text, { ...(await resolveConfig(path)), filepath: path });
}
