import type { Subject } from './subject.ts';

export function mobileconfig(_subject: Subject, _p12: Uint8Array): string {
  throw new Error('to come');
}
