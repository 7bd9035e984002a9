/** `POST /:id/runs`: a process in the container, and its output. */
import Type, { type Static } from 'typebox';
import { limits } from '../../limits.ts';

export const RunBody = Type.Object(
  {
    command: Type.Array(Type.String({ maxLength: limits.execArgumentChars, pattern: '^[^\\u0000]*$' }), {
      minItems: 1,
      maxItems: limits.execArguments,
      description: 'The program and its arguments.',
    }),
    timeout: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.waitMaxSeconds,
        default: limits.waitDefaultSeconds,
        description: 'Seconds after which the process is ended, and the answer is 504.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type RunBody = Static<typeof RunBody>;

export const RunView = Type.Object(
  {
    exit_code: Type.Integer({
      description: 'As shells count: 127 without such a program, 126 if it cannot be started, 128 and its signal.',
    }),
    stdout: Type.String({ description: 'Bytes that are no UTF-8 are replaced.' }),
    stderr: Type.String(),
    truncated: Type.Boolean({ description: 'True if there was more than 1 MiB of output in all; it is left out.' }),
  },
  { additionalProperties: false },
);
export type RunView = Static<typeof RunView>;
