import type { Subject } from './subject.ts';

export function sswan(_subject: Subject, _p12: Uint8Array): string {
  throw new Error('to come');
}
