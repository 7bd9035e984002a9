/** How many sessions a host takes. */
import t from 'tap';
import { createSessionPlaces } from '../../../host-agent/sessions/places.ts';
import { containerId } from '../../actors/support.ts';

t.test('a container has its own, and a host has all of them', (t) => {
  const places = createSessionPlaces({ perHost: 3, perContainer: 2 });
  const [one, two] = [containerId(), containerId()];
  const first = places.take(one);
  t.type(first, 'function');
  t.type(places.take(one), 'function');
  t.equal(places.take(one), 'the container has 2 sessions; close one');
  t.type(places.take(two), 'function');
  t.equal(places.take(two), 'the host has 3 sessions; close one');
  if (typeof first === 'function') first();
  t.type(places.take(two), 'function', 'a place that was given back');
  t.equal(places.take(one), 'the host has 3 sessions; close one');
  t.end();
});
