import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { SignatureError, verifyWebhook } from '@durable-payments/client';

const { SIGNING_SECRET = '', PORT = '9000' } = process.env;

const server = createServer(async (request, response) => {
  try {
    const event = verifyWebhook({
      body: await buffer(request), // exactly as received
      signature: String(request.headers['service-signature']),
      secret: SIGNING_SECRET,
    });
    console.log(event.type, event.id);
    response.writeHead(204).end();
  } catch (error) {
    const status = error instanceof SignatureError ? 400 : 500;
    response.writeHead(status).end();
  }
});
server.listen(Number(PORT), '127.0.0.1');
