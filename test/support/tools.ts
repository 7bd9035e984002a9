/**
 * Tools that only some tests need. Without such a tool its tests are skipped, and the reason names
 * the tool; in CI they fail instead.
 */
import { isOptional, type ToolName } from '../../dev/fetch/tool-table.ts';
import { ToolMissing, toolHere } from '../../dev/fetch/tools.ts';

/** Every CI service sets this variable. */
export const inCi = !['', 'false', undefined].includes(process.env['CI']);

/** Reason to skip a test that uses these tools on this machine, or false. CI skips nothing. */
export async function skipWithoutTools(...names: readonly ToolName[]): Promise<string | false> {
  if (inCi) return false;
  for (const name of names.filter(isOptional)) {
    try {
      await toolHere(name);
    } catch (error) {
      if (!(error instanceof ToolMissing)) throw error;
      // A skip reason is one line of TAP.
      return error.message.replaceAll(/\s*\n\s*/g, ' ');
    }
  }
  return false;
}
