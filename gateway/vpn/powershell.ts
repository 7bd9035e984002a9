import type { Subject } from './subject.ts';

export function powershell(_subject: Subject): string {
  throw new Error('to come');
}
