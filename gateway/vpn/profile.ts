import type { Subject } from './subject.ts';

export interface Profile {
  readonly version: 1;
}
export function profileOf(_subject: Subject): Profile {
  throw new Error('to come');
}
