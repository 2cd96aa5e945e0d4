import type { Page } from 'playwright-core';
import { openUser } from '../support/dashboard';
import { buildAccount, buildDispute, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { useService } from '../support/service';
import { answerDispute, enter, look, useBrowser } from './dashboard-visit';

const service = useService();
const browser = useBrowser();
const shop = useFixture(() => buildAccount(service, { funds: 100_000 }));
let page: Page;

beforeAll(async () => {
  const user = await openUser(service.stores, shop.account_id, 'finance');
  page = await enter(await browser.newContext(), service.url, user);
});

const link = (name: string) => page.getByRole('link', { name, exact: true });
const button = (name: string) => page.getByRole('button', { name, exact: true });
const heading = (name: string) => page.getByRole('heading', { name });

const report = (payment_id: string, event: string) =>
  shop.post(`/v1/sandbox/payments/${payment_id}/simulate`, { event });

test('a merchant finds a dispute in the overview, answers it, and wins it', async () => {
  await link('Disputes').click();
  await page.getByText('There are no disputes yet.').waitFor();
  await look(page, 'disputes-none');
  const payment = await buildPayment(shop, { method: 'visa', status: 'settled', amount: 4_900 });
  const dispute = await buildDispute(shop, { payment_id: payment.id, code: '13.1' });
  await link('Overview').click();
  await heading('Needs attention').waitFor();
  await look(page, 'disputes-due');
  await page.locator(`a[href$="/disputes/${dispute.id}"]`).click();
  await heading('Dispute of a payment of €49.00').waitFor();
  await page.getByText('The customer did not receive goods or services (13.1)').waitFor();
  await look(page, 'dispute');

  await answerDispute(page, 'dispute-evidence-asked');
  await service.becomes('disputes', dispute.id, { status: 'under_review' });
  await page.reload();
  await page.getByText('Under review', { exact: true }).first().waitFor();
  expect(await button('Send evidence').count()).toBe(0);
  await look(page, 'dispute-under-review');

  await report(payment.id, 'dispute_won');
  await service.becomes('disputes', dispute.id, { status: 'won' });
  await page.reload();
  await page.getByText('The bank decided for you.').waitFor();
  await look(page, 'dispute-won');
  await page.locator(`a[href$="/payments/${payment.id}"]`).click();
  await heading('Disputes of this payment').waitFor();
  await look(page, 'payment-disputed');
});

test('a merchant accepts a dispute, which is listed as accepted', async () => {
  const payment = await buildPayment(shop, { method: 'visa', status: 'settled' });
  const { id } = await buildDispute(shop, { payment_id: payment.id, code: '10.4' });
  await link('Disputes').click();
  await look(page, 'disputes');
  await page.locator(`a[href$="/disputes/${id}"]`).click();
  await button('Accept dispute').click();
  await page.getByText('The customer keeps the money').waitFor();
  await look(page, 'dispute-accept-asked');
  await button('Accept dispute').click();
  await page.getByText('The dispute is accepted.').waitFor();
  await service.becomes('disputes', id, { status: 'accepted' });
  await page.reload();
  await page.getByText('You accepted it: the customer keeps the money.').waitFor();
  await link('Disputes').click();
  await page.getByLabel('Status').selectOption('accepted');
  await button('Apply').click();
  await page.locator(`a[href$="/disputes/${id}"]`).waitFor();
  expect(await page.getByRole('row').count()).toBe(2);
});
