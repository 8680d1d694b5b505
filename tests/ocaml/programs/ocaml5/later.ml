(* Waits for a line of input, and then starts many domains that allocate little each. Prints how many words they have
   allocated. *)

let rec burn n acc = if n = 0 then acc else burn (n - 1) (n :: acc)

let () =
  print_endline "ready";
  ignore (input_line stdin);
  (* Whoever waits for the program to run OCaml code comes first. *)
  ignore (Sys.opaque_identity (burn 100_000 []));
  Gc.minor ();
  let words = ref 0. in
  for _ = 1 to 300 do
    let domain =
      Domain.spawn (fun () ->
          let before = Gc.minor_words () in
          ignore (Sys.opaque_identity (burn 1_000 []));
          Gc.minor_words () -. before)
    in
    words := !words +. Domain.join domain
  done;
  Printf.printf "%.0f\n%!" !words;
  ignore (input_line stdin)
