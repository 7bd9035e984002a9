import t from 'tap';
import type { ImageCheck } from '../../../host-agent/docker/answers.ts';
import { sentCheck } from '../../../host-agent/spec/health-check.ts';
import { defaultPolicy, healthDefaults } from '../../../schemas/api/policy.ts';
import { limits } from '../../../schemas/limits.ts';
import { container } from '../support/decisions.ts';

const second = 1_000_000_000;
const none = { Test: ['NONE'] };
const usual = {
  Interval: 30 * second,
  Timeout: 30 * second,
  Retries: 3,
  StartPeriod: 1_000_000,
  StartInterval: 5 * second,
};

const cases: readonly [name: string, ofImage: ImageCheck | null | undefined, sent: object][] = [
  ['no check', undefined, none],
  ['null', null, none],
  ['one that is switched off', { Test: ['NONE'], Interval: 1 }, none],
  ['nothing', { Test: [] }, none],
  ['an unknown kind', { Test: ['HTTP', '/'] }, none],
  ['no command, which an engine of 20.10 does not survive', { Test: ['CMD'] }, none],
  ['no shell command', { Test: ['CMD-SHELL'] }, none],
  ['a check without times', { Test: ['CMD-SHELL', 'true'] }, { Test: ['CMD-SHELL', 'true'], ...usual }],
  ['zeros', { Test: ['CMD', 'a'], Interval: 0, Timeout: 0, Retries: 0, StartPeriod: 0, StartInterval: 0 }, usual],
  [
    'a thousand checks a second',
    { Test: ['CMD', 'a'], Interval: 1_000_000, Timeout: 1_000_000, StartPeriod: 9 * second, StartInterval: 1_000_000 },
    { Interval: second, Timeout: second, StartPeriod: 9 * second, StartInterval: second },
  ],
  [
    'negative times',
    { Test: ['CMD', 'a'], Interval: -5, Timeout: -5, Retries: -5, StartPeriod: -5, StartInterval: -5 },
    { Interval: second, Timeout: second, Retries: 1, StartPeriod: 1_000_000, StartInterval: second },
  ],
  [
    'more than a policy may say',
    { Test: ['CMD', 'a'], Interval: 1e18, Timeout: 1e18, Retries: 1e9, StartPeriod: 1e18, StartInterval: 1e18 },
    {
      Interval: limits.healthSeconds * second,
      Timeout: limits.healthTimeoutSeconds * second,
      Retries: limits.healthRetries,
      StartPeriod: limits.healthSeconds * second,
      StartInterval: limits.healthSeconds * second,
    },
  ],
];
for (const [name, ofImage, sent] of cases) {
  t.test(`an image that declares ${name}`, (t) => {
    t.match(sentCheck(container(), ofImage), sent);
    t.end();
  });
}

t.test('a policy’s check leaves nothing to the image', (t) => {
  const hostile = { Test: ['CMD', 'a'], Interval: 1, Timeout: 1, Retries: 1, StartPeriod: 1e18, StartInterval: 1 };
  const health = { ...healthDefaults, command: ['b'], start_period: 0 };
  t.same(sentCheck(container({ policy: { ...defaultPolicy, health } }), hostile), {
    Test: ['CMD', 'b'],
    Interval: 10 * second,
    Timeout: 5 * second,
    Retries: 3,
    StartPeriod: 1_000_000,
    StartInterval: 5 * second,
  });
  t.same(sentCheck(container({ policy: { ...defaultPolicy, no_check: true } }), hostile), none);
  t.end();
});
