import t from 'tap';
import type { ImageDetails } from '../../../host-agent/docker/answers.ts';
import { imageFault, labelNames } from '../../../host-agent/images/check.ts';
import { limits } from '../../../schemas/limits.ts';

const { imageCommandBytes, imageLabelBytes, imageLabelNameBytes, imagePorts, imageVolumes } = limits;
const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`/v${index}`, {}]));

const cases: readonly [
  name: string,
  Config: Exclude<ImageDetails['Config'], undefined>,
  expected: RegExp | undefined,
][] = [
  ['no configuration', null, undefined],
  ['only nulls', { Labels: null, Entrypoint: null, Cmd: null, ExposedPorts: null, Volumes: null }, undefined],
  ['labels up to the limit', { Labels: { ab: 'x'.repeat(imageLabelBytes - 2) } }, undefined],
  ['labels beyond the limit', { Labels: { ab: 'x'.repeat(imageLabelBytes - 1) } }, /labels take \d+ bytes/],
  ['counted in bytes', { Labels: { ab: 'ü'.repeat(imageLabelBytes / 2) } }, /labels take \d+ bytes/],
  [
    'names of labels beyond the limit',
    { Labels: { ['n'.repeat(imageLabelNameBytes + 1)]: '' } },
    /names of labels take/,
  ],
  ['a command up to the limit', { Entrypoint: ['a'], Cmd: ['x'.repeat(imageCommandBytes - 1)] }, undefined],
  [
    'a command beyond the limit',
    { Entrypoint: ['a'], Cmd: ['x'.repeat(imageCommandBytes)] },
    /entrypoint and command take/,
  ],
  ['an environment up to the limit', { Env: ['x'.repeat(limits.imageEnvBytes)] }, undefined],
  ['an environment beyond the limit', { Env: ['x'.repeat(limits.imageEnvBytes), 'y'] }, /environment takes/],
  [
    'a health check up to the limit',
    { Healthcheck: { Test: ['CMD', 'x'.repeat(limits.healthCommandBytes - 3)] } },
    undefined,
  ],
  [
    'a health check beyond it',
    { Healthcheck: { Test: ['CMD', 'x'.repeat(limits.healthCommandBytes)] } },
    /health check takes/,
  ],
  ['a health check of nothing', { Healthcheck: null, Env: null }, undefined],
  [
    'a long path of a volume',
    { Volumes: { [`/${'x'.repeat(limits.imageOtherBytes)}`]: {} } },
    /names of ports and volumes/,
  ],
  ...['User', 'WorkingDir', 'StopSignal', 'Shell', 'OnBuild', 'Unheard'].flatMap((member): typeof cases => [
    [`a usual ${member}`, Object.fromEntries([[member, 'x']]), undefined],
    [
      `a ${member} beyond the limit`,
      Object.fromEntries([[member, ['x'.repeat(limits.imageOtherBytes)]]]),
      /user, working/,
    ],
  ]),
  ['ports up to the limit', { ExposedPorts: members(imagePorts) }, undefined],
  ['ports beyond the limit', { ExposedPorts: members(imagePorts + 1) }, /EXPOSE names 257 ports/],
  ['volumes up to the limit', { Volumes: members(imageVolumes) }, undefined],
  ['volumes at relative paths', { Volumes: { data: {}, './a/': {}, 'a/../b': {}, '/../c': {}, '..d': {} } }, undefined],
  ...['../data', 'a/../../b', '..', '.', ''].map((path): (typeof cases)[number] => [
    `a volume at ${JSON.stringify(path)}`,
    { Volumes: { [path]: {} } },
    /VOLUME ".*" is no path below \/, .* absolute path/,
  ]),
  ['volumes beyond the limit', { Volumes: members(imageVolumes + 1) }, /VOLUME names 17 volumes/],
];
for (const [name, Config, expected] of cases) {
  t.test(`an image with ${name}`, (t) => {
    const fault = imageFault({ Id: 'sha256:one', Config });
    if (expected === undefined) t.equal(fault, undefined);
    else t.match(fault, expected);
    t.end();
  });
}

t.test('the names of an image’s labels', (t) => {
  t.same(labelNames({ Id: 'x', Config: { Labels: { a: '1', b: '' } } }), ['a', 'b']);
  t.same(labelNames({ Id: 'x' }), []);
  t.end();
});
