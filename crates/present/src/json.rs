//! Helpers for JSON objects with a stable order of keys.

use serde_json::{Map, Value};

/// One object with the keys of all of `parts`, in their order.
#[must_use]
pub fn join(parts: impl IntoIterator<Item = Value>) -> Value {
    let mut all = Map::new();
    for part in parts {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    Value::Object(all)
}

/// `object` without those of `keys` that are null.
#[must_use]
pub fn without_null(mut object: Value, keys: &[&str]) -> Value {
    if let Value::Object(map) = &mut object {
        for key in keys {
            if map.get(*key).is_some_and(Value::is_null) {
                map.shift_remove(*key);
            }
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_joined_in_order_and_lose_only_the_named_nulls() {
        let object = join([json!({"b": 1, "a": null}), json!({"c": null, "d": 0})]);
        assert_eq!(object.to_string(), r#"{"b":1,"a":null,"c":null,"d":0}"#);
        assert_eq!(without_null(object, &["a", "d"]).to_string(), r#"{"b":1,"c":null,"d":0}"#);
    }
}
