import { MongoServerError } from 'mongodb';
import { openWithRetry } from '../../activities/shared/opening';

const taken = () =>
  new MongoServerError({ code: 11_000, message: 'E11000 duplicate key error index: position' });

test('a key that was taken is looked at again', async () => {
  let tries = 0;
  const opened = openWithRetry(async () => {
    tries += 1;
    if (tries < 3) throw taken();
    return 'open';
  });
  expect(await opened).toBe('open');
});

test('keys that are taken again and again end the attempt: no loop without a pause', async () => {
  let tries = 0;
  const attempt = openWithRetry(async () => {
    tries += 1;
    throw taken();
  });
  await expect(attempt).rejects.toThrow('E11000');
  expect(tries).toBe(3);
});

test('any other error is not repeated here', async () => {
  let tries = 0;
  const attempt = openWithRetry(async () => {
    tries += 1;
    throw new Error('the database is away');
  });
  await expect(attempt).rejects.toThrow('away');
  expect(tries).toBe(1);
});
