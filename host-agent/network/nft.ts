/** Runs the program `nft`, which configures the kernel's nftables. */
import { execFile } from 'node:child_process';
import { MiB, seconds } from '../../schemas/limits/units.ts';

/** The time of one run of nft. */
const nftMs = 10 * seconds;
const nftOutputBytes = 4 * MiB;

export type NftFault =
  /** There is no such program. */
  | 'missing'
  /** Only root or CAP_NET_ADMIN may change the kernel's firewall. */
  | 'forbidden'
  | 'failed';

export class NftError extends Error {
  readonly fault: NftFault;

  constructor(fault: NftFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'NftError';
    this.fault = fault;
  }
}

/** @returns the output @throws NftError */
export type Nft = (args: readonly string[], input?: string) => Promise<string>;

/** Debian installs it outside an ordinary user's PATH. */
const places = ['nft', '/usr/sbin/nft', '/sbin/nft', '/usr/local/sbin/nft'] as const;

export const systemNft: Nft = async (args, input = '') => {
  let missing: unknown;
  for (const place of places) {
    try {
      return await runAt(place, args, input);
    } catch (error) {
      if (!(error instanceof NftError) || error.fault !== 'missing') throw error;
      missing ??= error;
    }
  }
  throw missing;
};

const runAt = (program: string, args: readonly string[], input: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { timeout: nftMs, maxBuffer: nftOutputBytes };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(asNftError(error, stderr));
    });
    // It may end without reading.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });

function asNftError(error: Error & { code?: number | string | null; killed?: boolean }, stderr: string): NftError {
  if (error.code === 'ENOENT' || error.code === 'EACCES')
    return new NftError('missing', 'there is no program nft', error);
  if (/operation not permitted|must be root/i.test(stderr)) return new NftError('forbidden', stderr.trim(), error);
  const said = stderr.trim().split('\n')[0] ?? '';
  return new NftError('failed', error.killed === true ? `no answer within ${nftMs} ms` : said || error.message, error);
}
