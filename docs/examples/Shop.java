// Creates a payment and verifies webhooks, with Java's standard library (11 or later).
//   java Shop.java create BASE_URL API_KEY
//   java Shop.java verify SIGNING_SECRET SERVICE_SIGNATURE < BODY
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Shop {
  private static final HttpClient CLIENT = HttpClient.newHttpClient();
  private static final Pattern SIGNATURE = Pattern.compile("t=(\\d{1,12}),v1=([0-9a-f]{64})");

  /** Repeats a call whose outcome is unknown with the same key, which never creates a second payment. */
  static String createPayment(String baseUrl, String apiKey, String idempotencyKey, String body)
      throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(baseUrl + "/v1/payments"))
            .timeout(Duration.ofSeconds(30))
            .header("Authorization", "Bearer " + apiKey)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", idempotencyKey)
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    for (int attempt = 1; ; attempt++) {
      boolean isLast = attempt == 5;
      try {
        HttpResponse<String> response = CLIENT.send(request, BodyHandlers.ofString());
        int status = response.statusCode();
        if (status == 201) return response.body();
        boolean mayRepeat = status == 409 || status == 429 || status >= 500;
        if (!mayRepeat || isLast) throw new IllegalStateException(response.body());
      } catch (IOException error) {
        if (isLast) throw error;
      }
      Thread.sleep(attempt * 1_000L);
    }
  }

  /** The body is exactly what was received. */
  static boolean isGenuine(byte[] body, String signature, String secret)
      throws GeneralSecurityException {
    Matcher parts = SIGNATURE.matcher(signature);
    if (!parts.matches()) return false;
    Mac code = Mac.getInstance("HmacSHA256");
    code.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    code.update((parts.group(1) + ".").getBytes(StandardCharsets.UTF_8));
    StringBuilder expected = new StringBuilder();
    for (byte each : code.doFinal(body)) expected.append(String.format("%02x", each));
    long age = Math.abs(Instant.now().getEpochSecond() - Long.parseLong(parts.group(1)));
    return age <= 300
        && MessageDigest.isEqual(
            expected.toString().getBytes(StandardCharsets.US_ASCII),
            parts.group(2).getBytes(StandardCharsets.US_ASCII));
  }

  public static void main(String[] args) throws Exception {
    if (args[0].equals("create")) {
      String body =
          "{\"method\": \"ideal\", \"amount\": 1050, \"currency\": \"EUR\", \"country\": \"NL\","
              + " \"success_url\": \"https://shop.example/thanks\","
              + " \"error_url\": \"https://shop.example/sorry\", \"reference\": \"order-1001\"}";
      // Parse it with the JSON library that you use.
      System.out.println(createPayment(args[1], args[2], "order-1001-java", body));
    } else {
      byte[] body = System.in.readAllBytes();
      boolean isGenuine = isGenuine(body, args[2], args[1]);
      System.out.println(isGenuine ? new String(body, StandardCharsets.UTF_8) : "refused");
    }
  }
}
