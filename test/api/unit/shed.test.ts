import { createShedding } from '../../../src/api/rate-limit';
import { gate } from '../../support/gate';

const REFUSED = {
  code: 'temporarily_unavailable',
  message: expect.stringContaining('Nothing was done'),
};

test('what is over the limit is refused at once, until something ends; live is counted apart', async () => {
  const shed = createShedding(2);
  const { opened, release } = gate();
  const first = [shed(false, () => opened), shed(false, () => opened)];
  const never = jest.fn();
  await expect(shed(false, never)).rejects.toMatchObject(REFUSED);
  expect(never).not.toHaveBeenCalled();
  expect(await shed(true, async () => 'live')).toBe('live');
  release();
  await Promise.all(first);
  expect(await shed(false, async () => 'later')).toBe('later');
});

test('a create that fails makes room', async () => {
  const shed = createShedding(1);
  const broken = shed(false, () => Promise.reject(new Error('broken')));
  await expect(broken).rejects.toThrow('broken');
  expect(await shed(false, async () => 'next')).toBe('next');
});
