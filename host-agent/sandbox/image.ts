/**
 * The image of a sandbox: one static program of a few hundred bytes that waits for signals and does
 * nothing else. The agent makes it on the spot, so no registry is asked. Pure.
 */
import { pack } from 'tar-stream';

/** `repository:tag`; the tag rises when the program changes. */
export const sandboxImage = { repository: 'longshore-sandbox', tag: '1' } as const;

/** The path of the program in the image. */
export const sandboxProgram = '/pause';

interface Machine {
  /** `e_machine` of the ELF header. */
  readonly elf: number;
  /** Waits for a signal, again and again. */
  readonly code: readonly number[];
}

/** By the name that the engine gives its architecture (`GET /info`). */
const machines: Readonly<Record<string, Machine>> = {
  // mov eax, 34 (pause); syscall; jmp to the start
  x86_64: { elf: 62, code: [0xb8, 0x22, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7] },
  // x0 … x4 = 0; x8 = 73 (ppoll); svc 0; b to the start
  aarch64: {
    elf: 183,
    code: [
      ...[0x00, 0x00, 0x80, 0xd2, 0x01, 0x00, 0x80, 0xd2, 0x02, 0x00, 0x80, 0xd2],
      ...[0x03, 0x00, 0x80, 0xd2, 0x04, 0x00, 0x80, 0xd2, 0x28, 0x09, 0x80, 0xd2],
      ...[0x01, 0x00, 0x00, 0xd4, 0xf9, 0xff, 0xff, 0x17],
    ],
  },
};

export const hasSandboxProgram = (architecture: string): boolean => architecture in machines;

const headerLength = 64;
const segmentLength = 56;
const loadedAt = 0x400000n;

/** An ELF executable with one segment, which is loaded as a whole (System V ABI, chapters 4, 5). */
export function sandboxElf(architecture: string): Buffer {
  const machine = machines[architecture];
  if (machine === undefined) throw new Error(`there is no sandbox for the architecture ${architecture}`);
  const start = headerLength + segmentLength;
  const size = BigInt(start + machine.code.length);
  const file = Buffer.alloc(Number(size));
  // 64 bits, little-endian, version 1.
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  file.writeUInt16LE(2, 16); // an executable
  file.writeUInt16LE(machine.elf, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(loadedAt + BigInt(start), 24); // its entry
  file.writeBigUInt64LE(BigInt(headerLength), 32); // its segments
  file.writeUInt16LE(headerLength, 52);
  file.writeUInt16LE(segmentLength, 54);
  file.writeUInt16LE(1, 56);
  const segment = file.subarray(headerLength);
  segment.writeUInt32LE(1, 0); // to be loaded
  segment.writeUInt32LE(5, 4); // to be read and executed
  segment.writeBigUInt64LE(loadedAt, 16);
  segment.writeBigUInt64LE(loadedAt, 24);
  segment.writeBigUInt64LE(size, 32);
  segment.writeBigUInt64LE(size, 40);
  segment.writeBigUInt64LE(0x10000n, 48);
  file.set(machine.code, start);
  return file;
}

/** The files of the image. */
export async function sandboxTar(architecture: string): Promise<Buffer> {
  const tar = pack();
  tar.entry({ name: sandboxProgram.slice(1), mode: 0o555 }, sandboxElf(architecture));
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
