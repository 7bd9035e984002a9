/**
 * Tools that only some tests need: where they are not available, those tests are skipped by name;
 * in CI they fail.
 */
import { isOptional, type ToolName } from '../../dev/fetch/tool-table.ts';
import { ToolMissing, toolHere } from '../../dev/fetch/tools.ts';

/** Every CI service sets this variable. */
export const inCi = !['', 'false', undefined].includes(process.env['CI']);

/** Why a test that uses these tools must be skipped here; false where it can run, or must fail. */
export async function skipWithoutTools(...names: readonly ToolName[]): Promise<string | false> {
  if (inCi) return false;
  for (const name of names.filter(isOptional)) {
    try {
      await toolHere(name);
    } catch (error) {
      if (!(error instanceof ToolMissing)) throw error;
      // A line of TAP.
      return error.message.replaceAll(/\s*\n\s*/g, ' ');
    }
  }
  return false;
}
