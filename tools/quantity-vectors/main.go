// Command quantity-vectors prints what k8s.io/apimachinery does with thousands of quantities, one JSON object
// per line. The Rust tests of liqo-core hold their own quantity against these answers.
//
// The output depends on nothing but this source and the version in go.mod. To regenerate it:
//
//	cd tools/quantity-vectors && go run . > ../../crates/core/testdata/quantity-vectors.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// parsed is what the library makes of one text.
type parsed struct {
	Text string `json:"parse"`
	// Error is the kind of refusal (format, numeric, suffix); the other fields are then absent.
	Error     string `json:"error,omitempty"`
	Format    string `json:"format,omitempty"`
	Canonical string `json:"canonical,omitempty"`
	// Echo is what String() answers where that is not the canonical text: the library then hands back the
	// text it was given.
	Echo string `json:"echo,omitempty"`
	// Amount is the exact value as "<integer>e<power of ten>", whatever the format.
	Amount string `json:"amount,omitempty"`
	Value  *int64 `json:"value,omitempty"`
	Milli  *int64 `json:"milli,omitempty"`
}

// paired is what the library makes of two quantities.
type paired struct {
	A          string `json:"a"`
	B          string `json:"b"`
	Compare    int    `json:"cmp"`
	Sum        result `json:"sum"`
	Difference result `json:"diff"`
}

type result struct {
	Canonical string `json:"canonical"`
	Format    string `json:"format"`
	Amount    string `json:"amount"`
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	write := func(vector any) {
		if err := encoder.Encode(vector); err != nil {
			log.Fatalf("cannot write the vector %+v: %v", vector, err)
		}
	}

	for _, text := range unique(append(systematicTexts(), randomTexts()...)) {
		write(parse(text))
	}
	for _, pair := range unique(append(systematicPairs(), randomPairs()...)) {
		write(combine(pair.a, pair.b))
	}
	if err := out.Flush(); err != nil {
		log.Fatalf("cannot write the vectors: %v", err)
	}
}

func parse(text string) parsed {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return parsed{Text: text, Error: errorKind(err)}
	}
	answer := describe(quantity)
	value, milli := quantity.Value(), quantity.MilliValue()
	vector := parsed{
		Text:      text,
		Format:    answer.Format,
		Canonical: answer.Canonical,
		Amount:    answer.Amount,
		Value:     &value,
		Milli:     &milli,
	}
	if echo := quantity.String(); echo != answer.Canonical {
		vector.Echo = echo
	}
	return vector
}

func combine(a, b string) paired {
	// The library changes quantities in place, so that each question gets fresh ones.
	sum, difference, left := resource.MustParse(a), resource.MustParse(a), resource.MustParse(a)
	sum.Add(resource.MustParse(b))
	difference.Sub(resource.MustParse(b))
	return paired{
		A:          a,
		B:          b,
		Compare:    left.Cmp(resource.MustParse(b)),
		Sum:        describe(sum),
		Difference: describe(difference),
	}
}

// describe reads the canonical text past String(), which may answer with the text that was parsed.
func describe(quantity resource.Quantity) result {
	number, suffix := quantity.CanonicalizeBytes(nil)
	canonical := string(number) + string(suffix)
	mantissa, exponent := quantity.AsCanonicalBytes(nil)
	return result{
		Canonical: canonical,
		Format:    string(quantity.Format),
		Amount:    fmt.Sprintf("%se%d", mantissa, exponent),
	}
}

func errorKind(err error) string {
	switch {
	case errors.Is(err, resource.ErrFormatWrong):
		return "format"
	case errors.Is(err, resource.ErrNumeric):
		return "numeric"
	case errors.Is(err, resource.ErrSuffix):
		return "suffix"
	default:
		log.Fatalf("the library answered with an error this program does not know: %v", err)
		return ""
	}
}

// unique keeps the first of equal entries, so that no vector counts twice.
func unique[T comparable](entries []T) []T {
	seen := make(map[T]bool, len(entries))
	kept := make([]T, 0, len(entries))
	for _, entry := range entries {
		if !seen[entry] {
			seen[entry] = true
			kept = append(kept, entry)
		}
	}
	return kept
}
