// Creates a payment and verifies webhooks, with Go's standard library.
//
//	go run shop.go create BASE_URL API_KEY
//	go run shop.go verify SIGNING_SECRET SERVICE_SIGNATURE < BODY
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

type payment struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	RedirectURL string `json:"redirect_url"`
}

var client = &http.Client{Timeout: 30 * time.Second}

// createPayment repeats a call whose outcome is unknown with the same key, which never creates a
// second payment.
func createPayment(baseURL, apiKey, idempotencyKey string, body []byte) (*payment, error) {
	for attempt := 1; ; attempt++ {
		created, mayRepeat, err := send(baseURL, apiKey, idempotencyKey, body)
		if err == nil || !mayRepeat || attempt == 5 {
			return created, err
		}
		time.Sleep(time.Duration(attempt) * time.Second)
	}
}

func send(baseURL, apiKey, key string, body []byte) (created *payment, mayRepeat bool, err error) {
	request, err := http.NewRequest(http.MethodPost, baseURL+"/v1/payments", bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	request.Header.Set("Authorization", "Bearer "+apiKey)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	response, err := client.Do(request)
	if err != nil {
		return nil, true, err
	}
	defer response.Body.Close()
	if status := response.StatusCode; status != http.StatusCreated {
		var refusal struct{ Error struct{ Code string } }
		_ = json.NewDecoder(response.Body).Decode(&refusal)
		return nil, status == 409 || status == 429 || status >= 500, errors.New(refusal.Error.Code)
	}
	created = new(payment)
	err = json.NewDecoder(response.Body).Decode(created)
	return created, err != nil, err
}

var format = regexp.MustCompile(`^t=(\d{1,12}),v1=([0-9a-f]{64})$`)

// isGenuine takes the body exactly as received.
func isGenuine(body []byte, signature, secret string) bool {
	parts := format.FindStringSubmatch(signature)
	if parts == nil {
		return false
	}
	code := hmac.New(sha256.New, []byte(secret))
	code.Write([]byte(parts[1] + "."))
	code.Write(body)
	received, _ := hex.DecodeString(parts[2])
	seconds, _ := strconv.ParseInt(parts[1], 10, 64)
	age := time.Since(time.Unix(seconds, 0)).Abs()
	return hmac.Equal(code.Sum(nil), received) && age <= 300*time.Second
}

func main() {
	command, first, second := os.Args[1], os.Args[2], os.Args[3]
	if command == "create" {
		body, _ := json.Marshal(map[string]any{
			"method":      "ideal",
			"amount":      1050,
			"currency":    "EUR",
			"country":     "NL",
			"success_url": "https://shop.example/thanks",
			"error_url":   "https://shop.example/sorry",
			"reference":   "order-1001",
		})
		created, err := createPayment(first, second, "order-1001-go", body)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(created.RedirectURL)
		return
	}
	body, _ := io.ReadAll(os.Stdin)
	if !isGenuine(body, second, first) {
		fmt.Println("refused")
		return
	}
	var event struct{ Type string }
	_ = json.Unmarshal(body, &event)
	fmt.Println(event.Type)
}
