import t from 'tap';
import { encodeFrame, endFrame } from '../../../gateway/streams/sse.ts';

t.test('a frame has its id, its event and one line of data', (t) => {
  t.equal(encodeFrame({ id: '7', event: 'log', data: '{}' }), 'id: 7\nevent: log\ndata: {}\n\n');
  t.equal(encodeFrame({ data: '[]' }), 'data: []\n\n');
  t.equal(endFrame('stopping'), 'event: end\ndata: {"reason":"stopping"}\n\n');
  t.end();
});
