import { ETHER, useCryptoShop, WALLET } from '../api/crypto-setting';
import { readText, sendUntilMade, useVisitor } from '../support/dashboard';
import { eventually } from '../support/http';
import { useService } from '../support/service';

const service = useService();
const shop = useCryptoShop(service);

const owner = useVisitor(service, shop);

const page = async (path: string) => {
  const { html } = await owner.get(`/dashboard/sandbox${path}`);
  return { html, text: readText(html) };
};

/** A payment of one ether that has come. */
async function received(transaction_id: string, changes: object = {}): Promise<string> {
  const { id } = await shop.pay(changes);
  await shop.deposit(id, transaction_id, ETHER);
  await shop.until(id, 'its receipt', ({ status }) => status === 'received');
  return id;
}

test('a crypto payment is found, shows its deposits and their outcome, and is exported', async () => {
  const id = await received('0xa1', { reference: 'ether <1>' });
  const { address } = await shop.read(id);
  const row = `href="/dashboard/sandbox/crypto/payments/${id}"`;
  for (const query of ['', `?search=${id}`, '?search=ether+%3C1%3E', '?method=eth_ethereum']) {
    expect((await page(`/crypto/payments${query}`)).html).toContain(row);
  }
  for (const query of ['?status=held', '?method=btc_bitcoin', '?search=ether']) {
    expect((await page(`/crypto/payments${query}`)).html).not.toContain(row);
  }
  const { text } = await page(`/crypto/payments/${id}`);
  const expected = [
    ...['Crypto payment of €100.00', 'ether &lt;1>', '0xa1', '1 ETH', '3 of 3'],
    ...['Chain reported deposit', 'Moved to received', 'main, available: +1 ETH'],
    'Event crypto.payment.received',
  ];
  for (const words of expected) expect(text).toContain(words);
  const csv = (await owner.get('/dashboard/sandbox/crypto/payments.csv?search=ether+%3C1%3E')).html;
  expect(csv.split('\r\n')[1]).toMatch(
    new RegExp(`^${id},.*,received,100.00,EUR,ETH,ethereum,0.04,1,2500,${address},ether <1>,`),
  );
  expect((await page('/overview')).text).toContain('ETH on ethereum');
});

test('a balance is settled once however often its form is sent', async () => {
  await shop.registerWallet();
  await received('0xb1');
  const wallets = await page('/crypto/wallets');
  const key = /name="key" value="(dashboard-[0-9a-f-]{36})"/.exec(wallets.html)?.[1] ?? '';
  const form = { key, asset: 'ETH', network: 'ethereum' };
  const settle = '/dashboard/sandbox/crypto/settle';
  const confirmation = await owner.post(settle, form);
  expect(confirmation.html).toContain(
    'Pay the whole balance of ETH out to the wallet on ethereum?',
  );
  const made = /\/crypto\/settlements\/[0-9a-f-]{36}$/;
  const send = () => sendUntilMade(() => owner.confirm(settle, form), made);
  const [first, second] = await Promise.all([send(), send()]);
  const again = await send();
  expect([first, second]).toEqual([again, again]);
  const id = again.split('/').at(-1) ?? '';
  const { transaction_id } = await eventually('the instruction', async () => {
    const stored = await service.stores.crypto_settlements.get(id);
    return stored?.transaction_id != null && stored;
  });
  await shop.report('crypto_settlement', id, 'completed', { transaction_id });
  await service.temporal.workflow.getHandle(`crypto-settlement:${id}`).result();
  const { text } = await page(`/crypto/settlements/${id}`);
  for (const words of ['Settlement of', 'ETH', WALLET]) expect(text).toContain(words);
  expect(await shop.count('crypto_settlements')).toBe(1);
  expect((await page(`/crypto/settlements?search=${transaction_id}`)).html).toContain(id);
  const late = await owner.confirm(settle, {
    ...form,
    key: key.replace(/.$/, (end) => (end === '0' ? '1' : '0')),
  });
  expect(late.location).toBe('/dashboard/sandbox/crypto/wallets');
  expect((await page('/crypto/wallets')).text).toContain('The balance has 0 ETH;');
});
