import { randomBytes } from 'node:crypto';
import { createEncrypter } from '../../src/encryption/encrypter';
import { hashPassword, isPassword } from '../../src/encryption/password';

/** Far more than the pool of Node's own threads takes at once. */
const FLOOD = 24;

test('a flood of passwords does not delay the encryption of a payer', async () => {
  const encrypter = createEncrypter({ current: 'a', keys: { a: randomBytes(32) } });
  const hash = await hashPassword('right');
  expect(await isPassword('right', hash)).toBe(true);
  let compared = 0;
  const flood = Array.from({ length: FLOOD }, async () => {
    expect(await isPassword('wrong', hash)).toBe(false);
    compared += 1;
  });
  // All of them are handed to their thread.
  await new Promise(setImmediate);
  await encrypter.encrypt('ada@example.com', 'payment/1');
  expect(compared).toBeLessThan(FLOOD / 2);
  await Promise.all(flood);
});
